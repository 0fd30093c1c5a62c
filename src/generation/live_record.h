// A record that has its place in a group: its search, and the pages in which the keys and values of
// its rows lie. Private to the generator.
#ifndef QUINTET_GENERATION_LIVE_RECORD_H_
#define QUINTET_GENERATION_LIVE_RECORD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "generation/generator.h"
#include "generation/pages.h"
#include "generation/search.h"

namespace quintet {

// The pools of a ring's caches.
struct PagePools {
  explicit PagePools(const CachePages& pages) : self(pages.self), cross(pages.cross) {}

  PagePool self;
  PagePool cross;
};

// What a record takes up at most from now on.
struct Needs {
  int64_t rows = 0;
  CachePages pages;
};

// max_positions: of one sequence; 0: no bound.
Needs needs_of(const GenerationTask& task, int64_t n_source, int64_t max_positions);

class LiveRecord {
 public:
  // Reserves; null where the pools have too little left, `task` is then as before. source_rows:
  // [n, d_model] of the encoder, until the first step; without an encoder an empty tensor.
  static std::unique_ptr<LiveRecord> admit(GenerationTask& task, const Tensor& source_rows,
                                           PagePools& pools, int64_t max_positions);
  ~LiveRecord();  // gives pages and reservations back
  LiveRecord(const LiveRecord&) = delete;
  LiveRecord& operator=(const LiveRecord&) = delete;

  uint64_t ordinal() const { return task_.ordinal; }
  const Search& search() const { return *task_.search; }
  const std::vector<int32_t>& prompt() const { return task_.prompt; }
  int64_t places() const { return reserved_.rows; }  // rows that it may come to have
  bool started() const { return n_keys_ > 0; }       // its prompt has been in a step
  int64_t n_rows() const { return started() ? static_cast<int64_t>(rows_.size()) : 1; }
  int32_t n_keys() const { return n_keys_; }  // of each row, in the caches or about to be kept
  int32_t token(size_t row) const { return tokens_[row]; }  // the next to go in
  const std::vector<int32_t>& pages(size_t row) const { return rows_[row]; }
  const std::vector<int32_t>& cross_pages() const { return cross_pages_; }
  int32_t n_source() const { return n_source_; }

  // Takes the prompt's pages, self and cross; gives the encoder's rows away.
  Tensor begin();
  // Makes room for one more key of a row: a page more, or a page of its own instead of one that has
  // other owners, which is then to be copied.
  struct Room {
    int32_t slot = 0;
    bool copies = false;
    PageCopy copy;
  };
  Room make_room(size_t row);
  void count_key() { ++n_keys_; }  // once every row has room

  // The next rows from the candidates of these. False: the search is finished, could not go on (the
  // result then says why), or no position is left.
  bool advance(std::span<const Candidates> candidates);
  // Of a search of one row: the tokens that the last step chose.
  bool streams() const { return streams_; }
  std::vector<int32_t> last_tokens(bool goes_on) const;
  GenerationResult result() const;

 private:
  LiveRecord(GenerationTask task, Tensor source_rows, PagePools& pools, int64_t max_positions,
             Needs needs);
  void fork(const std::vector<NextRow>& next);
  void shrink_reservation();

  GenerationTask task_;
  Tensor source_rows_;
  PagePools& pools_;
  const int64_t max_positions_;
  const bool streams_;
  Needs reserved_;
  int32_t n_source_ = 0;
  int32_t n_keys_ = 0;
  int64_t n_steps_ = 0;
  std::vector<std::vector<int32_t>> rows_;  // self pages of each
  std::vector<int32_t> tokens_;             // of each row
  std::vector<int32_t> cross_pages_;
  std::string rejected_;
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_LIVE_RECORD_H_
