#include "tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "tokenizer/json_fields.h"
#include "tokenizer/traced_text.h"

namespace quintet {
namespace {

constexpr size_t kKeptSymbols = 4096;  // of a thread's scratch, between words

std::string byte_piece(int byte) { return fmt::format("<0x{:02X}>", byte); }

// From what a piece spells to its place in `pieces`.
ByteTrie trie_of(const std::vector<std::pair<std::string, int32_t>>& pieces) {
  std::vector<std::pair<std::string_view, int32_t>> sorted;
  sorted.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].first.empty()) sorted.emplace_back(pieces[i].first, static_cast<int32_t>(i));
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string_view> keys;
  std::vector<int32_t> values;
  for (const auto& [key, value] : sorted) {
    keys.push_back(key);
    values.push_back(value);
  }
  return {keys, values};
}

std::pair<std::string, std::string> split_merge(std::string_view line, size_t number,
                                                const std::string& where) {
  const size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos) {
    fail(ErrorKind::kFile, "{}: merge {} is '{}', two pieces with one space between expected",
         where, number, line.substr(0, 60));
  }
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

void check_count(size_t n, const std::string& where) {
  if (n > kMaxPieces) {
    fail(ErrorKind::kFile, "{}: {} merges, at most {} are accepted", where, n, kMaxPieces);
  }
}

}  // namespace

Bpe::Bpe(BpeParts parts, const std::string& where)
    : pieces_(std::move(parts.vocab)),
      fuse_unk_(parts.fuse_unk),
      ignore_merges_(parts.ignore_merges) {
  std::sort(pieces_.begin(), pieces_.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto same = [](const auto& a, const auto& b) { return a.second == b.second; };
  const auto twice = std::adjacent_find(pieces_.begin(), pieces_.end(), same);
  if (twice != pieces_.end()) {
    fail(ErrorKind::kFile, "{}: id {} belongs to '{}' and to '{}'", where, twice->second,
         twice->first.substr(0, 60), std::next(twice)->first.substr(0, 60));
  }
  trie_ = trie_of(pieces_);
  byte_pieces_.fill(kNone);
  for (int byte = 0; byte < 256 && parts.byte_fallback; ++byte) {
    byte_pieces_[byte] = trie_.find(byte_piece(byte)).value_or(kNone);
  }
  if (parts.unk_token) {
    unk_ = trie_.find(*parts.unk_token).value_or(kNone);
    if (unk_ == kNone) {
      fail(ErrorKind::kFile, "{}: unk_token '{}' is not in the vocabulary", where,
           parts.unk_token->substr(0, 60));
    }
  }
  read_merges(parts, where);
}

void Bpe::read_merges(const BpeParts& parts, const std::string& where) {
  check_count(parts.merges.size(), where);
  const auto require = [&](const std::string& piece, size_t number) {
    if (const auto found = trie_.find(piece)) return *found;
    fail(ErrorKind::kFile, "{}: merge {} needs '{}', which is not in the vocabulary", where, number,
         piece.substr(0, 60));
  };
  std::vector<std::pair<int32_t, Merge>> by_left;
  by_left.reserve(parts.merges.size());
  for (size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto& [left, right] = parts.merges[rank];
    by_left.emplace_back(require(left, rank + 1),
                         Merge{require(right, rank + 1), static_cast<uint32_t>(rank),
                               require(left + right, rank + 1)});
  }
  // Of a pair that is given twice the last counts: it comes first and covers the other.
  std::sort(by_left.begin(), by_left.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.right, b.second.rank) <
           std::tie(b.first, b.second.right, a.second.rank);
  });
  first_merge_.assign(pieces_.size() + 1, 0);
  for (const auto& [left, merge] : by_left) {
    ++first_merge_[left + 1];
    merges_.push_back(merge);
  }
  for (size_t i = 1; i < first_merge_.size(); ++i) first_merge_[i] += first_merge_[i - 1];
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  const auto begin = merges_.begin() + first_merge_[left];
  const auto end = merges_.begin() + first_merge_[left + 1];
  const auto found = std::lower_bound(
      begin, end, right, [](const Merge& merge, int32_t value) { return merge.right < value; });
  return found != end && found->right == right ? &*found : nullptr;
}

void Bpe::encode(std::string_view word, const TokenSink& sink) const {
  if (ignore_merges_) {
    if (const auto id = find(word)) {
      sink({*id, 0, word.size()});
      return;
    }
  }
  if (word.size() > std::numeric_limits<uint32_t>::max()) {
    fail(ErrorKind::kRecord, "a word of {} bytes is longer than the 4 GiB that one may have",
         word.size());
  }
  thread_local Scratch scratch;
  scratch.symbols.clear();
  spell(word, scratch.symbols);
  merge(scratch);
  const std::vector<Symbol>& symbols = scratch.symbols;
  for (size_t at = 0; at < symbols.size();) {
    const size_t next = at + symbols[at].extent;
    const size_t end = next < symbols.size() ? symbols[next].begin : word.size();
    sink({pieces_[symbols[at].piece].second, symbols[at].begin, end});
    at = next;
  }
  if (symbols.size() > kKeptSymbols) scratch = {};
}

void Bpe::spell(std::string_view word, std::vector<Symbol>& symbols) const {
  bool behind_unknown = false;
  for (size_t at = 0; at < word.size();) {
    const uint32_t size = code_point_at(word, at).size;
    const std::string_view character = word.substr(at, size);
    const auto begin = static_cast<uint32_t>(at);
    const auto piece = trie_.find(character);
    if (piece) {
      symbols.push_back({*piece, 1, begin});
    } else {
      spell_unknown(character, begin, behind_unknown, symbols);
    }
    behind_unknown = !piece;
    at += size;
  }
}

void Bpe::spell_unknown(std::string_view character, uint32_t begin, bool behind_unknown,
                        std::vector<Symbol>& symbols) const {
  const auto byte_of = [&](char c) { return byte_pieces_[static_cast<unsigned char>(c)]; };
  const bool as_bytes =
      std::all_of(character.begin(), character.end(), [&](char c) { return byte_of(c) != kNone; });
  if (as_bytes) {
    for (const char c : character) symbols.push_back({byte_of(c), 1, begin++});
  } else if (unk_ != kNone) {
    const bool joins = fuse_unk_ && behind_unknown && symbols.back().piece == unk_;
    if (!joins) symbols.push_back({unk_, 1, begin});
  }
}

// Merges symbols in place until no pair of neighbours can be.
void Bpe::merge(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  Queue& queue = scratch.queue;
  queue.clear();
  for (size_t left = 0; left < symbols.size(); ++left) enqueue(symbols, left, queue);
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  // Entries that other merges have made void are swept out when they are many.
  const size_t limit = symbols.size() + symbols.size() / 4 + 16;
  queue.reserve(limit + 2);
  const auto push = [&](size_t left) {
    const size_t n_before = queue.size();
    enqueue(symbols, left, queue);
    if (queue.size() > n_before) std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    const uint64_t entry = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const Merge* merge = open_merge(symbols, entry);
    if (merge == nullptr) continue;
    const size_t left = entry & 0xFFFFFFFF;
    const size_t right = left + symbols[left].extent;
    const uint32_t extent = symbols[left].extent + symbols[right].extent;
    symbols[right].piece = kNone;
    symbols[left].piece = merge->result;
    symbols[left].extent = symbols[left + extent - 1].extent = extent;
    push(left);
    if (left > 0) push(left - symbols[left - 1].extent);
    if (queue.size() > limit) {
      std::erase_if(queue, [&](uint64_t e) { return open_merge(symbols, e) == nullptr; });
      std::make_heap(queue.begin(), queue.end(), std::greater<>());
    }
  }
}

// Adds the merge of the symbol at `left` with the one behind it, if there is one.
void Bpe::enqueue(const std::vector<Symbol>& symbols, size_t left, Queue& queue) const {
  const size_t right = left + symbols[left].extent;
  if (right >= symbols.size()) return;
  const Merge* merge = find_merge(symbols[left].piece, symbols[right].piece);
  if (merge != nullptr) queue.push_back(uint64_t{merge->rank} << 32 | left);
}

// The merge that `entry` stands for; null where its symbols are no longer what they were.
const Bpe::Merge* Bpe::open_merge(const std::vector<Symbol>& symbols, uint64_t entry) const {
  const size_t left = entry & 0xFFFFFFFF;
  const size_t right = left + symbols[left].extent;
  if (symbols[left].piece == kNone || right >= symbols.size()) return nullptr;
  const Merge* merge = find_merge(symbols[left].piece, symbols[right].piece);
  return merge != nullptr && merge->rank == entry >> 32 ? merge : nullptr;
}

std::optional<int32_t> Bpe::find(std::string_view piece) const {
  const auto found = trie_.find(piece);
  return found ? std::optional(pieces_[*found].second) : std::nullopt;
}

std::string_view Bpe::piece(int32_t id) const {
  const auto found =
      std::lower_bound(pieces_.begin(), pieces_.end(), id,
                       [](const auto& piece, int32_t value) { return piece.second < value; });
  return found != pieces_.end() && found->second == id ? std::string_view(found->first)
                                                       : std::string_view();
}

std::optional<int32_t> Bpe::unk_id() const {
  return unk_ == kNone ? std::nullopt : std::optional(pieces_[unk_].second);
}

std::vector<std::pair<std::string, int32_t>> read_bpe_vocab(const nlohmann::json& vocab,
                                                            const std::string& where) {
  if (!vocab.is_object() || vocab.empty() || vocab.size() > kMaxPieces) {
    fail(ErrorKind::kFile, "{}: the vocabulary must be an object of 1 ... {} pieces", where,
         kMaxPieces);
  }
  std::vector<std::pair<std::string, int32_t>> pieces;
  pieces.reserve(vocab.size());
  for (const auto& [piece, id] : vocab.items()) {
    if (piece.size() > kMaxPieceBytes) {
      fail(ErrorKind::kFile, "{}: a piece of {} bytes, at most {} are accepted", where,
           piece.size(), kMaxPieceBytes);
    }
    pieces.emplace_back(piece, require_id(id, piece.substr(0, 40).c_str(), where));
  }
  return pieces;
}

std::vector<std::pair<std::string, std::string>> parse_merges(std::string_view text,
                                                              const std::string& where) {
  std::vector<std::pair<std::string, std::string>> merges;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    merges.push_back(split_merge(line, merges.size() + 1, where));
    check_count(merges.size(), where);
  }
  return merges;
}

std::unique_ptr<WordModel> read_bpe(const nlohmann::json& spec, const std::string& where) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const nlohmann::json& value = member(spec, key);
    if (!value.is_null() && value != "") {
      fail(ErrorKind::kFile, "{}: '{}' is {}, which is not supported", where, key,
           value.dump().substr(0, 40));
    }
  }
  if (const auto& dropout = member(spec, "dropout"); !dropout.is_null() && dropout != 0) {
    fail(ErrorKind::kFile, "{}: 'dropout' is {}: tokens drawn by chance are not supported", where,
         dropout.dump().substr(0, 40));
  }
  BpeParts parts;
  parts.vocab = read_bpe_vocab(member(spec, "vocab"), where);
  const nlohmann::json& merges = member(spec, "merges");
  if (!merges.is_array()) fail(ErrorKind::kFile, "{}: 'merges' must be a list", where);
  check_count(merges.size(), where);
  for (const nlohmann::json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      parts.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    if (!merge.is_string()) {
      fail(ErrorKind::kFile, "{}: merge {} is {}, two pieces expected", where,
           parts.merges.size() + 1, merge.dump().substr(0, 60));
    }
    const auto& line = merge.get_ref<const std::string&>();
    parts.merges.push_back(split_merge(line, parts.merges.size() + 1, where));
  }
  if (!member(spec, "unk_token").is_null()) {
    parts.unk_token = require_string(spec, "unk_token", where);
  }
  parts.fuse_unk = bool_or(spec, "fuse_unk", false, where);
  parts.byte_fallback = bool_or(spec, "byte_fallback", false, where);
  parts.ignore_merges = bool_or(spec, "ignore_merges", false, where);
  return std::make_unique<Bpe>(std::move(parts), where);
}

}  // namespace quintet
