#include "pipeline/stage.h"

#include <algorithm>
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
  settle();
  close_next();
  if (next_ == nullptr) {
    shared_.end();
  } else {
    lend_until([this] { return shared_.ended.load(); });
  }
}

void Stage::work() {
  part_.device->attach_thread();
  const bool ahead = part_.device->asynchronous();
  std::optional<Begun> now = begin_next();
  while (now) {
    std::optional<Begun> following;
    if (ahead && input_.can_pop()) following = begin_next();
    if (!finish(std::move(*now), following ? &*following : nullptr)) return;
    now = following ? std::move(following) : begin_next();
  }
}

std::optional<Stage::Begun> Stage::begin_next() {
  std::optional<BatchParcel> parcel = take();
  if (!parcel) return std::nullopt;
  Begun begun;
  begun.parcel = std::move(*parcel);
  begun.place = taken_++;
  try {
    begin(begun);
  } catch (...) {
    begun.failure = std::current_exception();
  }
  return begun;
}

std::optional<BatchParcel> Stage::take() {
  const auto begin = Clock::now();
  lend_until([this] { return input_.can_pop(); });
  std::optional<BatchParcel> parcel = input_.pop();
  if (previous_ != nullptr) previous_->wake();
  meter_.waiting(begin);
  return parcel;
}

void Stage::begin(Begun& begun) {
  Device& device = *part_.device;
  BatchParcel& parcel = begun.parcel;
  const MicroBatch& batch = parcel.batch;
  if (previous_ != nullptr) {
    const auto begin = Clock::now();
    previous_->link_->receive(parcel);
    meter_.link(begin, work_of(batch));
  }
  begun.since = Clock::now();
  parcel.hidden = part_.blocks->forward(batch, std::move(parcel.hidden));
  assert(parcel.hidden.rows() == batch.n_tokens());
  assert(parcel.hidden.cols() == shared_.d_model);
  if (next_ == nullptr && shared_.options.pooling) {
    const Tensor pooled = device.allocate(batch.n_seqs(), shared_.d_model);
    device.pool(parcel.hidden, batch.pool_begin, batch.pool_end, *shared_.options.pooling,
                shared_.options.normalize, pooled);
    parcel.hidden = pooled;
  }
  begun.mark = device.mark();
}

void Stage::reach(Begun& begun) {
  if (begun.reached || begun.failure) return;
  begun.reached = true;
  try {
    part_.device->wait_for(begun.mark);
  } catch (...) {
    begun.failure = std::current_exception();
    return;
  }
  const MicroBatch& batch = begun.parcel.batch;
  meter_.busy("compute", std::max(begun.since, free_since_), work_of(batch));
  meter_.count(batch.n_tokens());
  free_since_ = Clock::now();
}

// False where what comes behind has been aborted. `following`: the next one where it has begun.
bool Stage::finish(Begun begun, Begun* following) {
  ordinals_ = begun.parcel.batch.ordinals;
  place_ = begun.place;
  reach(begun);
  if (begun.failure) std::rethrow_exception(begun.failure);
  return next_ != nullptr ? pass_on(std::move(begun.parcel), begun.mark, following)
                          : deliver(std::move(begun.parcel), begun.mark, following);
}

bool Stage::pass_on(BatchParcel parcel, uint64_t mark, Begun* following) {
  const auto begin = Clock::now();
  link_->send(parcel, mark);
  meter_.link(begin, work_of(parcel.batch));
  const bool accepted = put_into(next_->input_, std::move(parcel), following);
  if (accepted) next_->wake();
  return accepted;
}

bool Stage::deliver(BatchParcel parcel, uint64_t mark, Begun* following) {
  HostRows rows = to_host(parcel, mark);
  parcel.hidden = {};  // here, on the thread that drives the device it belongs to
  return put_into(shared_.results,
                  BatchResult{.batch = std::move(parcel.batch), .rows = std::move(rows)},
                  following);
}

// The copy keeps a device busy that computes in the memory of the host; others copy beside.
HostRows Stage::to_host(const BatchParcel& parcel, uint64_t mark) {
  const auto begin = Clock::now();
  const Tensor& rows = parcel.hidden;
  HostRows host = buffers_->take(static_cast<size_t>(rows.rows() * rows.cols()));
  part_.device->download_at(mark, rows, host.data());
  if (part_.device->asynchronous()) {
    meter_.link(begin, work_of(parcel.batch));
  } else {
    meter_.busy("to host", begin, work_of(parcel.batch));
  }
  return host;
}

// Where there is no room the following one is waited for first: else its end would go unseen, and
// the time until there is room would count as computing.
template <typename T>
bool Stage::put_into(BoundedQueue<T>& queue, T item, Begun* following) {
  if (following != nullptr && !queue.can_push()) reach(*following);
  const auto begin = Clock::now();
  lend_until([&queue] { return queue.can_push(); });
  const bool accepted = queue.push(std::move(item));
  meter_.waiting(begin);
  return accepted;
}

// Nothing of this stage is under way any more: its weights may go. What is thrown now belongs to
// micro-batches that nobody waits for.
void Stage::settle() {
  try {
    part_.device->wait();
  } catch (...) {
    return;
  }
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
