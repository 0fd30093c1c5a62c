#include "tokenizer/unigram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tokenizer/json_fields.h"
#include "tokenizer/traced_text.h"

namespace quintet {
namespace {

constexpr double kUnkPenalty = 10.0;
constexpr int32_t kNoByte = -1;

ByteTrie build_trie(const std::vector<std::string>& pieces) {
  std::vector<int32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return pieces[a] < pieces[b]; });
  std::vector<std::string_view> keys;
  std::vector<int32_t> ids;
  for (const int32_t id : order) {
    const std::string& piece = pieces[id];
    if (piece.empty()) {
      continue;  // never matches
    }
    if (!keys.empty() && keys.back() == piece) {
      ids.back() = id;
    } else {
      keys.emplace_back(piece);
      ids.push_back(id);
    }
  }
  return {keys, ids};
}

void check(const UnigramPieces& pieces, const std::string& where) {
  const size_t n = pieces.pieces.size();
  if (n == 0 || n > kMaxPieces) {
    fail(ErrorKind::kFile, "{}: a vocabulary of {} pieces, 1 ... {} expected", where, n,
         kMaxPieces);
  }
  if (pieces.unk_id && static_cast<size_t>(*pieces.unk_id) >= n) {
    fail(ErrorKind::kFile, "{}: unk_id {} is outside the vocabulary of {} pieces", where,
         *pieces.unk_id, n);
  }
  for (size_t id = 0; id < n; ++id) {
    if (pieces.pieces[id].size() > kMaxPieceBytes) {
      fail(ErrorKind::kFile, "{}: piece {} has {} bytes, at most {} are accepted", where, id,
           pieces.pieces[id].size(), kMaxPieceBytes);
    }
    if (!std::isfinite(pieces.scores[id])) {
      fail(ErrorKind::kFile, "{}: the score of piece {} is not a finite number", where, id);
    }
  }
}

}  // namespace

// A step of the way through a word, in 4 bytes: a piece by its id, or an unknown character of n
// bytes as -n.
constexpr int32_t kNoStep = std::numeric_limits<int32_t>::min();

Unigram::Unigram(UnigramPieces pieces, const std::string& where) : pieces_(std::move(pieces)) {
  check(pieces_, where);
  trie_ = build_trie(pieces_.pieces);
  for (const std::string& piece : pieces_.pieces) longest_ = std::max(longest_, piece.size());
  unk_score_ = *std::min_element(pieces_.scores.begin(), pieces_.scores.end()) - kUnkPenalty;
  byte_ids_.fill(kNoByte);
  if (pieces_.byte_fallback) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = find(fmt::format("<0x{:02X}>", byte)).value_or(kNoByte);
    }
  }
}

size_t Unigram::step_size(int32_t step) const {
  return step < 0 ? static_cast<size_t>(-step) : pieces_.pieces[step].size();
}

bool Unigram::is_unknown(int32_t step) const { return step < 0 || step == pieces_.unk_id; }

// steps[i] becomes the last step of the best way to the word's byte i, kNoStep where none leads
// there. Scores are kept as far back as a piece reaches.
void Unigram::find_last_steps(std::string_view word, std::vector<int32_t>& steps) const {
  steps.assign(word.size() + 1, kNoStep);
  const size_t mask = std::bit_ceil(std::min(longest_, word.size()) + 1) - 1;
  std::vector<double> scores(mask + 1, 0.0);
  const auto offer = [&](size_t at, double score, int32_t step) {
    if (steps[at] == kNoStep || score > scores[at & mask]) {
      steps[at] = step;
      scores[at & mask] = score;
    }
  };
  for (size_t begin = 0; begin < word.size();) {
    const size_t char_size = code_point_at(word, begin).size;
    const double so_far = scores[begin & mask];
    bool has_char = false;
    trie_.for_each_prefix(word.substr(begin), [&](size_t length, int32_t id) {
      offer(begin + length, so_far + pieces_.scores[id], id);
      has_char = has_char || length == char_size;
    });
    if (!has_char) {
      if (!pieces_.unk_id) {
        fail(ErrorKind::kRecord, "'{}' is not in the vocabulary, which has no unknown token",
             word.substr(begin, char_size));
      }
      offer(begin + char_size, so_far + unk_score_, -static_cast<int32_t>(char_size));
    }
    begin += char_size;
  }
}

void Unigram::encode(std::string_view word, const TokenSink& sink) const {
  constexpr size_t kKeptSteps = 4096;
  thread_local std::vector<int32_t> steps;
  find_last_steps(word, steps);

  // Backwards along the best way each step moves from its end to its beginning.
  int32_t step = steps[word.size()];
  for (size_t end = word.size(); end > 0;) {
    end -= step_size(step);
    std::swap(step, steps[end]);
  }
  // Forwards, with runs of unknown characters as one.
  for (size_t begin = 0; begin < word.size();) {
    const int32_t first = steps[begin];
    size_t end = begin + step_size(first);
    if (!is_unknown(first)) {
      sink({first, begin, end});
    } else {
      while (end < word.size() && is_unknown(steps[end])) end += step_size(steps[end]);
      emit_unknown(word, begin, end, sink);
    }
    begin = end;
  }
  if (steps.size() > kKeptSteps) steps = {};
}

void Unigram::emit_unknown(std::string_view word, size_t begin, size_t end,
                           const TokenSink& sink) const {
  const std::string_view text = word.substr(begin, end - begin);
  if (const auto id = find(text)) {  // joined, they may be a piece after all
    sink({*id, begin, end});
    return;
  }
  const bool as_bytes = std::all_of(text.begin(), text.end(), [&](char c) {
    return byte_ids_[static_cast<unsigned char>(c)] != kNoByte;
  });
  if (!as_bytes) {
    sink({*pieces_.unk_id, begin, end});
    return;
  }
  for (size_t at = begin; at < end; ++at) {
    sink({byte_ids_[static_cast<unsigned char>(word[at])], at, at + 1});
  }
}

std::string_view Unigram::piece(int32_t id) const {
  const bool known = id >= 0 && static_cast<size_t>(id) < pieces_.pieces.size();
  return known ? std::string_view(pieces_.pieces[id]) : std::string_view();
}

std::unique_ptr<WordModel> read_unigram(const nlohmann::json& spec, const std::string& where) {
  const nlohmann::json& vocab = member(spec, "vocab");
  if (!vocab.is_array() || vocab.size() > kMaxPieces) {
    fail(ErrorKind::kFile, "{}: 'vocab' must be a list of at most {} [piece, score] pairs", where,
         kMaxPieces);
  }
  UnigramPieces pieces;
  pieces.pieces.reserve(vocab.size());
  pieces.scores.reserve(vocab.size());
  for (const nlohmann::json& entry : vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      fail(ErrorKind::kFile, "{}: entry {} of 'vocab' is {}, [piece, score] expected", where,
           pieces.pieces.size(), entry.dump().substr(0, 60));
    }
    pieces.pieces.push_back(entry[0].get<std::string>());
    pieces.scores.push_back(entry[1].get<double>());
  }
  if (const nlohmann::json& unk = member(spec, "unk_id"); !unk.is_null()) {
    pieces.unk_id = require_id(unk, "unk_id", where);
  }
  pieces.byte_fallback = bool_or(spec, "byte_fallback", false, where);
  return std::make_unique<Unigram>(std::move(pieces), where);
}

}  // namespace quintet
