// Sequences that pass both stacks once, without a cache of their own decoder: for scoring and for
// forward().
#ifndef QUINTET_ENGINE_FORWARD_BATCH_H_
#define QUINTET_ENGINE_FORWARD_BATCH_H_

#include <cstdint>
#include <vector>

#include "core/micro_batch.h"
#include "core/tensor.h"
#include "pipeline/ring.h"

namespace quintet {

// What one record has each stack read. Of a decoder alone `source` is without tokens.
struct ForwardItem {
  Sequence source;
  Sequence decoder;  // at least one token

  int64_t cross_pages() const;  // that its source takes in the cross caches
};

class ForwardBatch {
 public:
  void add(ForwardItem item);

  bool empty() const { return items_.empty(); }
  int64_t n_source_tokens() const { return n_source_tokens_; }
  int64_t n_tokens() const { return n_tokens_; }  // of the decoder
  int64_t cross_pages() const { return cross_pages_; }

  EncodeJob encode_job(uint64_t tag) const;
  // `sources`: what the encoder made of encode_job()'s batch; empty for a decoder alone. The
  // sources' keys go to cross pages from first_page on. All rows are selected; the request is the
  // caller's.
  StepJob step_job(uint64_t tag, std::vector<Tensor> sources, int32_t first_page) const;

 private:
  void add_cross(int32_t page, StepBatch& step) const;

  std::vector<ForwardItem> items_;
  int64_t n_source_tokens_ = 0;
  int64_t n_tokens_ = 0;
  int64_t cross_pages_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_FORWARD_BATCH_H_
