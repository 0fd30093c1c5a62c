#include "pipeline/stage.h"

#include <cassert>
#include <utility>

#include "core/error.h"
#include "link/registry.h"

namespace quintet {
namespace {

StageMeter::Work work_of(const MicroBatch& batch) {
  return {.number = static_cast<int64_t>(batch.number), .tokens = batch.n_tokens()};
}

}  // namespace

void StageShared::end() {
  ended = true;
  for (Stage* stage : stages) stage->wake();
}

Stage::Stage(PipelineStage part, size_t index, StageShared& shared)
    : part_(std::move(part)),
      index_(index),
      shared_(shared),
      label_(fmt::format("stage {} ({}, blocks {}-{})", index, part_.device->name(),
                         part_.range.first_block, part_.range.last_block - 1)),
      input_(shared.options.queue_capacity),
      // Being filled, waiting, with the consumer.
      buffers_(HostBuffers::create(shared.options.queue_capacity + 2)),
      meter_(shared.options.trace,
             shared.options.trace != nullptr ? shared.options.trace->add_track(label_) : 0) {
  shared.stages.push_back(this);
}

void Stage::connect(Stage& next) {
  next_ = &next;
  next.previous_ = this;
  link_ = make_link(*part_.device, *next.part_.device);
}

void Stage::start() {
  thread_ = std::thread([this] { run(); });
}

void Stage::join() {
  if (thread_.joinable()) thread_.join();
}

bool Stage::put(BatchParcel parcel) {
  const bool accepted = input_.push(std::move(parcel));
  if (accepted) wake();
  return accepted;
}

void Stage::end_of_input() {
  input_.close();
  wake();
}

StageStats Stage::stats() const { return meter_.stats(part_.device->name(), part_.range); }

void Stage::run() {
  try {
    work();
  } catch (...) {
    note_failure();
  }
  close_next();
  if (next_ == nullptr) {
    shared_.end();
  } else {
    lend_until([this] { return shared_.ended.load(); });
  }
}

void Stage::work() {
  part_.device->attach_thread();
  while (std::optional<BatchParcel> parcel = take()) {
    ordinals_ = parcel->batch.ordinals;
    if (previous_ != nullptr) {
      const auto begin = Clock::now();
      previous_->link_->receive(*parcel);
      meter_.link(begin, work_of(parcel->batch));
    }
    compute(*parcel);
    const bool accepted =
        next_ != nullptr ? pass_on(std::move(*parcel)) : deliver(to_host(std::move(*parcel)));
    if (!accepted) return;  // what comes behind has been aborted
    ++place_;
  }
}

std::optional<BatchParcel> Stage::take() {
  ordinals_.clear();
  const auto begin = Clock::now();
  lend_until([this] { return input_.can_pop(); });
  std::optional<BatchParcel> parcel = input_.pop();
  if (previous_ != nullptr) previous_->wake();
  meter_.waiting(begin);
  return parcel;
}

void Stage::compute(BatchParcel& parcel) {
  const auto begin = Clock::now();
  parcel.hidden = part_.blocks->forward(parcel.batch, std::move(parcel.hidden));
  part_.device->wait();
  assert(parcel.hidden.rows() == parcel.batch.n_tokens());
  assert(parcel.hidden.cols() == shared_.d_model);
  meter_.busy("compute", begin, work_of(parcel.batch));
  meter_.count(parcel.batch.n_tokens());
}

bool Stage::pass_on(BatchParcel parcel) {
  auto begin = Clock::now();
  link_->send(parcel);
  meter_.link(begin, work_of(parcel.batch));
  begin = Clock::now();
  lend_until([this] { return next_->input_.can_push(); });
  const bool accepted = next_->put(std::move(parcel));
  meter_.waiting(begin);
  return accepted;
}

bool Stage::deliver(BatchResult result) {
  const auto begin = Clock::now();
  lend_until([this] { return shared_.results.can_push(); });
  const bool accepted = shared_.results.push(std::move(result));
  meter_.waiting(begin);
  return accepted;
}

BatchResult Stage::to_host(BatchParcel parcel) {
  const auto begin = Clock::now();
  const MicroBatch& batch = parcel.batch;
  Device& device = *part_.device;
  Tensor rows = std::move(parcel.hidden);
  if (shared_.options.pooling) {
    const Tensor pooled = device.allocate(batch.n_seqs(), shared_.d_model);
    device.pool(rows, batch.pool_begin, batch.pool_end, *shared_.options.pooling,
                shared_.options.normalize, pooled);
    rows = pooled;
  }
  HostRows host = buffers_->take(static_cast<size_t>(rows.rows() * rows.cols()));
  device.download(rows, host.data());
  meter_.busy("to host", begin, work_of(batch));
  return {.batch = std::move(parcel.batch), .rows = std::move(host)};
}

void Stage::close_next() {
  if (next_ != nullptr) {
    next_->end_of_input();
  } else {
    shared_.results.close();
  }
}

// Works for other devices while `ready` is false, or returns at once where this device does not
// lend; the call that follows then waits by itself.
template <typename Ready>
void Stage::lend_until(const Ready& ready) {
  if (shared_.options.lend && !ready()) part_.device->lend_until(ready);
}

void Stage::note_failure() {
  shared_.failures.add_current(place_, label_, ordinals_);
  for (size_t i = 0; i <= index_; ++i) {
    shared_.stages[i]->input_.abort();
    shared_.stages[i]->wake();
  }
}

}  // namespace quintet
