#include "generation/pages.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>

#include "core/step_batch.h"

namespace quintet {
namespace {

int64_t pages_for(int64_t n_tokens) {
  return n_tokens / kPageTokens + (n_tokens % kPageTokens != 0 ? 1 : 0);
}

}  // namespace

CachePages pages_of_record(int64_t prompt_length, int64_t source_length, int64_t max_rows,
                           int64_t max_new_tokens) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t n_new = std::clamp<int64_t>(max_new_tokens - 1, 0, kMost - prompt_length);
  const int64_t n_shared = prompt_length / kPageTokens;
  const int64_t n_own = pages_for(prompt_length + n_new) - n_shared;
  const int64_t rows = std::max<int64_t>(max_rows, 1);
  const bool fits = n_own <= (kMost - n_shared) / rows;
  return {.self = fits ? n_shared + rows * n_own : kMost, .cross = pages_for(source_length)};
}

PagePool::PagePool(int64_t n_pages)
    : owners_(static_cast<size_t>(n_pages)), free_(static_cast<size_t>(n_pages)) {
  std::iota(free_.begin(), free_.end(), 0);  // rising: a heap with the least on top
}

bool PagePool::reserve(int64_t count) {
  if (count > n_pages() - n_reserved_) return false;
  n_reserved_ += count;
  return true;
}

void PagePool::unreserve(int64_t count) {
  assert(count <= n_reserved_);
  n_reserved_ -= count;
}

int32_t PagePool::take() {
  assert(!free_.empty());
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t page = free_.back();
  free_.pop_back();
  owners_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  assert(owners(page) > 0);
  ++owners_[static_cast<size_t>(page)];
}

void PagePool::drop(int32_t page) {
  assert(owners(page) > 0);
  if (--owners_[static_cast<size_t>(page)] > 0) return;
  free_.push_back(page);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace quintet
