#include "tokenizer/unigram.h"

#include <algorithm>
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

// The best way to cut the word up to some byte: its last piece and its score.
struct Unigram::Node {
  double score = 0;
  uint32_t begin = kOpen;  // where the last piece begins
  int32_t id = 0;

  static constexpr uint32_t kOpen = std::numeric_limits<uint32_t>::max();

  void offer(double other, size_t from, int32_t piece) {
    if (begin == kOpen || other > score) {
      *this = {other, static_cast<uint32_t>(from), piece};
    }
  }
};

Unigram::Unigram(UnigramPieces pieces, const std::string& where) : pieces_(std::move(pieces)) {
  check(pieces_, where);
  trie_ = build_trie(pieces_.pieces);
  unk_score_ = *std::min_element(pieces_.scores.begin(), pieces_.scores.end()) - kUnkPenalty;
  byte_ids_.fill(kNoByte);
  if (pieces_.byte_fallback) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = find(fmt::format("<0x{:02X}>", byte)).value_or(kNoByte);
    }
  }
}

void Unigram::fill_lattice(std::string_view word, std::vector<Node>& best) const {
  best.assign(word.size() + 1, Node{});
  for (size_t begin = 0; begin < word.size();) {
    const size_t char_size = code_point_at(word, begin).size;
    const double so_far = best[begin].score;
    bool has_char = false;
    trie_.for_each_prefix(word.substr(begin), [&](size_t length, int32_t id) {
      best[begin + length].offer(so_far + pieces_.scores[id], begin, id);
      has_char = has_char || length == char_size;
    });
    if (!has_char) {
      if (!pieces_.unk_id) {
        fail(ErrorKind::kRecord, "'{}' is not in the vocabulary, which has no unknown token",
             word.substr(begin, char_size));
      }
      best[begin + char_size].offer(so_far + unk_score_, begin, *pieces_.unk_id);
    }
    begin += char_size;
  }
}

void Unigram::encode(std::string_view word, std::vector<WordToken>& tokens) const {
  constexpr size_t kKeptNodes = 4096;
  thread_local std::vector<Node> best;
  fill_lattice(word, best);

  // Backwards along the best way; then forwards, with runs of unknown pieces as one.
  std::vector<WordToken> path;
  for (size_t end = word.size(); end > 0; end = best[end].begin) {
    path.push_back({best[end].id, best[end].begin, end});
  }
  if (best.size() > kKeptNodes) {
    best = {};
  }
  for (size_t i = path.size(); i > 0;) {
    const WordToken first = path[--i];
    if (first.id != pieces_.unk_id) {
      tokens.push_back(first);
      continue;
    }
    size_t end = first.end;
    while (i > 0 && path[i - 1].id == pieces_.unk_id) {
      end = path[--i].end;
    }
    append_unknown(word, first.begin, end, tokens);
  }
}

void Unigram::append_unknown(std::string_view word, size_t begin, size_t end,
                             std::vector<WordToken>& tokens) const {
  const std::string_view text = word.substr(begin, end - begin);
  if (const auto id = find(text)) {  // joined, they may be a piece after all
    tokens.push_back({*id, begin, end});
    return;
  }
  const bool as_bytes = std::all_of(text.begin(), text.end(), [&](char c) {
    return byte_ids_[static_cast<unsigned char>(c)] != kNoByte;
  });
  if (!as_bytes) {
    tokens.push_back({*pieces_.unk_id, begin, end});
    return;
  }
  for (size_t at = begin; at < end; ++at) {
    tokens.push_back({byte_ids_[static_cast<unsigned char>(word[at])], at, at + 1});
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
