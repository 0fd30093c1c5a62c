// Records on their way to a place: taken from the input ahead of need, refused where they can never
// be generated, and encoded in micro-batches. Private to the generator.
#ifndef QUINTET_GENERATION_INTAKE_H_
#define QUINTET_GENERATION_INTAKE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/micro_batch.h"
#include "core/tensor.h"
#include "generation/generator.h"
#include "generation/live_record.h"
#include "pipeline/ring.h"

namespace quintet {

// A record that waits for a place.
struct WaitingRecord {
  GenerationTask task;
  Needs needs;
  bool ready = false;  // encoded, or there is nothing to encode
  Tensor source_rows;
};

class Intake {
 public:
  Intake(Ring& ring, const GeneratorOptions& options, const Generator::Events& events,
         const std::atomic<bool>& stop);

  // Takes records and has them encoded until those that wait could fill the free places and one
  // group's. Starts again only when half a group's are left, so that encodes are of some size.
  // Hands what is refused to `done`.
  void fill(int64_t free_places);
  void take(const EncodeResult& encoded);
  WaitingRecord* first_ready();  // null: none
  void drop_first_ready();       // it has got its place

  int64_t waiting_rows() const { return waiting_rows_; }
  int64_t ready_rows() const { return ready_rows_; }
  bool is_encoding() const { return n_encoding_ > 0 || !batches_.empty(); }
  bool empty() const { return waiting_.empty(); }

 private:
  using Place = std::list<WaitingRecord>::iterator;

  void take_in(GenerationTask task, std::vector<Sequence>& to_encode);
  std::string why_refused(const GenerationTask& task, const Needs& needs) const;
  void pack(std::vector<Sequence> sequences);
  void submit_encodes();

  Ring& ring_;
  const GeneratorOptions& options_;
  const Generator::Events& events_;
  const std::atomic<bool>& stop_;
  const bool encodes_;
  bool ended_ = false;                           // the input
  std::list<WaitingRecord> waiting_;             // in the order of the input
  std::unordered_map<uint64_t, Place> unready_;  // by ordinal
  int64_t waiting_rows_ = 0;
  int64_t ready_rows_ = 0;
  int64_t waiting_cross_pages_ = 0;
  std::deque<MicroBatch> batches_;  // not yet submitted
  int64_t n_encoding_ = 0;          // submitted
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_INTAKE_H_
