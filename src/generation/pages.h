// Counting out the pages of the decoder's caches. Page numbers mean the same on every stage, so one
// pool of numbers on the host serves a whole ring.
#ifndef QUINTET_GENERATION_PAGES_H_
#define QUINTET_GENERATION_PAGES_H_

#include <cstdint>
#include <vector>

#include "models/decoder.h"

namespace quintet {

// The most pages that a record can hold at once. Self: its prompt's full pages stand once, however
// many rows there are; behind them each row may come to have its own. The last new token of a row
// is never kept. Cross: the source's, once.
CachePages pages_of_record(int64_t prompt_length, int64_t source_length, int64_t max_rows,
                           int64_t max_new_tokens);

// Pages [0, n_pages) with the number of their owners. The least free page is given first: what is
// handed out depends on nothing but the calls.
class PagePool {
 public:
  explicit PagePool(int64_t n_pages);

  int64_t n_pages() const { return static_cast<int64_t>(owners_.size()); }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }
  int64_t n_reserved() const { return n_reserved_; }

  // Sets pages aside without saying which: whoever takes no more at once than it reserved never
  // finds the pool empty. False where fewer are left.
  bool reserve(int64_t count);
  void unreserve(int64_t count);

  int32_t take();            // one owner
  void share(int32_t page);  // one owner more
  void drop(int32_t page);   // one owner less; without owners the page is free again
  int32_t owners(int32_t page) const { return owners_[static_cast<size_t>(page)]; }

 private:
  std::vector<int32_t> owners_;  // [n_pages]
  std::vector<int32_t> free_;    // a heap, the least on top
  int64_t n_reserved_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_PAGES_H_
