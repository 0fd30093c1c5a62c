// A trie over bytes, from strings to numbers, laid out flat: the children of a node are neighbours.
#ifndef QUINTET_TOKENIZER_BYTE_TRIE_H_
#define QUINTET_TOKENIZER_BYTE_TRIE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace quintet {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  ByteTrie() = default;
  // Keys must be sorted, distinct and not empty; values[i] >= 0 belongs to keys[i]. The keys are
  // not kept. Throws std::length_error beyond 2^31 nodes.
  ByteTrie(const std::vector<std::string_view>& keys, const std::vector<int32_t>& values);

  // Calls visit(length, value) for each key that `text` begins with, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) {
        return;
      }
      if (nodes_[node].value != kNone) {
        visit(i + 1, nodes_[node].value);
      }
    }
  }

  std::optional<int32_t> find(std::string_view key) const;

 private:
  struct Node {
    uint32_t first_child = 0;
    int32_t value = kNone;
    uint16_t n_children = 0;
    uint8_t byte = 0;
  };

  uint32_t child(uint32_t node, unsigned char byte) const;  // 0: none

  std::vector<Node> nodes_;          // [0] is the root
  std::array<uint32_t, 256> top_{};  // the root's children by byte
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_BYTE_TRIE_H_
