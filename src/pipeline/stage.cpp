#include "pipeline/stage.h"

#include <cassert>
#include <new>
#include <utility>

#include "core/error.h"
#include "link/registry.h"

namespace quintet {
namespace {

double seconds(const std::atomic<int64_t>& nanoseconds) {
  return static_cast<double>(nanoseconds.load()) * 1e-9;
}

}  // namespace

void Failures::add(uint64_t place, BatchError error) {
  const std::scoped_lock lock(mutex_);
  if (first_ && place_ <= place) return;
  place_ = place;
  first_.emplace(std::move(error));
}

void Failures::raise() const {
  const std::scoped_lock lock(mutex_);
  if (first_) throw BatchError(*first_);
}

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
      buffers_(HostBuffers::create(shared.options.queue_capacity + 2)) {
  if (shared.options.trace != nullptr) track_ = shared.options.trace->add_track(label_);
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

bool Stage::put(Parcel parcel) {
  const bool accepted = input_.push(std::move(parcel));
  if (accepted) wake();
  return accepted;
}

void Stage::end_of_input() {
  input_.close();
  wake();
}

StageStats Stage::stats() const {
  return {.device = part_.device->name(),
          .range = part_.range,
          .busy_seconds = seconds(busy_ns_),
          .link_seconds = seconds(link_ns_),
          .waiting_seconds = seconds(waiting_ns_),
          .batches = batches_,
          .tokens = tokens_};
}

void Stage::run() {
  try {
    work();
  } catch (const Error& error) {
    fail_with(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    fail_with(ErrorKind::kMemory, "out of host memory");
  } catch (const std::exception& error) {
    fail_with(ErrorKind::kDevice, error.what());
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
  while (std::optional<Parcel> parcel = take()) {
    ordinals_ = parcel->batch.ordinals;
    if (previous_ != nullptr) {
      const auto begin = Clock::now();
      previous_->link_->receive(*parcel);
      account(link_ns_, "link", begin, &parcel->batch);
    }
    compute(*parcel);
    const bool accepted =
        next_ != nullptr ? pass_on(std::move(*parcel)) : deliver(to_host(std::move(*parcel)));
    if (!accepted) return;  // what comes behind has been aborted
    ++place_;
  }
}

std::optional<Parcel> Stage::take() {
  ordinals_.clear();
  const auto begin = Clock::now();
  lend_until([this] { return input_.can_pop(); });
  std::optional<Parcel> parcel = input_.pop();
  if (previous_ != nullptr) previous_->wake();
  account(waiting_ns_, "waiting", begin, nullptr);
  return parcel;
}

void Stage::compute(Parcel& parcel) {
  const auto begin = Clock::now();
  parcel.hidden = part_.blocks->forward(parcel.batch, std::move(parcel.hidden));
  part_.device->wait();
  assert(parcel.hidden.rows() == parcel.batch.n_tokens());
  assert(parcel.hidden.cols() == shared_.d_model);
  account(busy_ns_, "compute", begin, &parcel.batch);
  ++batches_;
  tokens_ += parcel.batch.n_tokens();
}

bool Stage::pass_on(Parcel parcel) {
  auto begin = Clock::now();
  link_->send(parcel);
  account(link_ns_, "link", begin, &parcel.batch);
  begin = Clock::now();
  lend_until([this] { return next_->input_.can_push(); });
  const bool accepted = next_->put(std::move(parcel));
  account(waiting_ns_, "waiting", begin, nullptr);
  return accepted;
}

bool Stage::deliver(BatchResult result) {
  const auto begin = Clock::now();
  lend_until([this] { return shared_.results.can_push(); });
  const bool accepted = shared_.results.push(std::move(result));
  account(waiting_ns_, "waiting", begin, nullptr);
  return accepted;
}

BatchResult Stage::to_host(Parcel parcel) {
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
  account(busy_ns_, "to host", begin, &batch);
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

void Stage::fail_with(ErrorKind kind, const char* message) {
  shared_.failures.add(place_, BatchError(kind, fmt::format("{}: {}", label_, message), ordinals_));
  for (size_t i = 0; i <= index_; ++i) {
    shared_.stages[i]->input_.abort();
    shared_.stages[i]->wake();
  }
}

void Stage::account(std::atomic<int64_t>& nanoseconds, std::string_view name,
                    Clock::time_point begin, const MicroBatch* batch) {
  constexpr std::chrono::microseconds kTooShortToShow{5};
  const auto end = Clock::now();
  nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
  if (shared_.options.trace == nullptr || end - begin < kTooShortToShow) return;
  TraceEvent event = {.name = name, .begin = begin, .end = end};
  if (batch != nullptr) {
    event.batch = static_cast<int64_t>(batch->number);
    event.tokens = batch->n_tokens();
  }
  shared_.options.trace->add(track_, event);
}

}  // namespace quintet
