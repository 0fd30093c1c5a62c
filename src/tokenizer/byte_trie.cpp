#include "tokenizer/byte_trie.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <stdexcept>

namespace quintet {

ByteTrie::ByteTrie(const std::vector<std::string_view>& keys, const std::vector<int32_t>& values) {
  struct Task {  // a node whose subtree holds keys [begin, end), all alike in `depth` bytes
    uint32_t node;
    size_t begin;
    size_t end;
    size_t depth;
  };
  nodes_.emplace_back();
  std::deque<Task> tasks{{0, 0, keys.size(), 0}};
  while (!tasks.empty()) {
    const Task task = tasks.front();
    tasks.pop_front();
    size_t begin = task.begin;
    if (begin < task.end && keys[begin].size() == task.depth) {
      nodes_[task.node].value = values[begin++];
    }
    if (nodes_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      throw std::length_error("a trie of more than 2^31 nodes");
    }
    nodes_[task.node].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < task.end) {
      const char byte = keys[begin][task.depth];
      size_t end = begin + 1;
      while (end < task.end && keys[end][task.depth] == byte) {
        ++end;
      }
      tasks.push_back({static_cast<uint32_t>(nodes_.size()), begin, end, task.depth + 1});
      nodes_.emplace_back().byte = static_cast<uint8_t>(byte);
      ++nodes_[task.node].n_children;
      begin = end;
    }
  }
  for (uint32_t i = 0; i < nodes_[0].n_children; ++i) {
    const uint32_t node = nodes_[0].first_child + i;
    top_[nodes_[node].byte] = node;
  }
}

uint32_t ByteTrie::child(uint32_t node, unsigned char byte) const {
  if (node == 0) {
    return top_[byte];
  }
  const auto first = nodes_.begin() + nodes_[node].first_child;
  const auto last = first + nodes_[node].n_children;
  const auto found = std::lower_bound(first, last, byte,
                                      [](const Node& n, unsigned char b) { return n.byte < b; });
  return found != last && found->byte == byte ? static_cast<uint32_t>(found - nodes_.begin()) : 0;
}

std::optional<int32_t> ByteTrie::find(std::string_view key) const {
  std::optional<int32_t> result;
  for_each_prefix(key, [&](size_t length, int32_t value) {
    if (length == key.size()) {
      result = value;
    }
  });
  return result;
}

}  // namespace quintet
