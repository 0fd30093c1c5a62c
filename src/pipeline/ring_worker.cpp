#include "pipeline/ring_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "link/registry.h"

namespace quintet {
namespace {

constexpr int kStepsBeforeEncode = 8;  // that an encode lets by at each device

std::string label_of(const char* stack, const Device& device, StageRange range) {
  return fmt::format("{} stage ({}, blocks {}-{})", stack, device.name(), range.first_block,
                     range.last_block - 1);
}

StageMeter::Work work_of(const EncodeTravel& travel) {
  return {.number = static_cast<int64_t>(travel.place), .tokens = travel.batch.n_tokens()};
}

StageMeter::Work work_of(const StepTravel& travel) {
  return {.number = static_cast<int64_t>(travel.place), .tokens = travel.step.n_rows()};
}

}  // namespace

void RingShared::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  for (RingWorker* worker : workers) worker->wake();
}

void RingShared::abort() {
  {
    const std::scoped_lock lock(mutex_);
    aborted_ = true;
    results_.clear();
  }
  stop();
}

void RingShared::begin_job() {
  const std::scoped_lock lock(mutex_);
  ++in_flight_;
}

void RingShared::deliver(RingResult result) {
  const std::scoped_lock lock(mutex_);
  if (stopped_) return;
  results_.push_back(std::move(result));
  changed_.notify_one();
}

RingResult RingShared::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || in_flight_ == 0 || !results_.empty(); });
  if (stopped_ && !aborted_) failures.raise();
  if (stopped_ || results_.empty()) return {};
  RingResult result = std::move(results_.front());
  results_.pop_front();
  --in_flight_;
  return result;
}

size_t RingShared::in_flight() const {
  const std::scoped_lock lock(mutex_);
  return stopped_ ? 0 : in_flight_;
}

RingWorker::RingWorker(RingDevice part, RingShared& shared)
    : part_(std::move(part)), shared_(shared) {
  Trace* const trace = shared.options.trace;
  const int track = trace != nullptr ? trace->add_track(part_.device->name()) : 0;
  encoder_.meter = std::make_unique<StageMeter>(trace, track);
  decoder_.meter = std::make_unique<StageMeter>(trace, track);
  encoder_.label = label_of("encoder", *part_.device, part_.encoder_range);
  decoder_.label = label_of("decoder", *part_.device, part_.decoder_range);
  if (part_.decoder != nullptr) head_.emplace(*part_.decoder, *part_.device);
  shared.workers.push_back(this);
}

void RingWorker::connect_encoder(RingWorker& next) {
  encoder_.next = &next;
  encoder_.to = make_link(*part_.device, *next.part_.device);
  next.encoder_.from = encoder_.to.get();
}

void RingWorker::connect_decoder(RingWorker& next) {
  decoder_.next = &next;
  decoder_.to = make_link(*part_.device, *next.part_.device);
  next.decoder_.from = decoder_.to.get();
}

void RingWorker::start() {
  thread_ = std::thread([this] { run(); });
}

void RingWorker::join() {
  if (thread_.joinable()) thread_.join();
}

void RingWorker::put(std::unique_ptr<EncodeTravel> job) {
  {
    const std::scoped_lock lock(mutex_);
    encodes_.push_back(std::move(job));
  }
  wake();
}

void RingWorker::put(std::unique_ptr<StepTravel> job) {
  {
    const std::scoped_lock lock(mutex_);
    steps_.push_back(std::move(job));
  }
  wake();
}

void RingWorker::wake() {
  {
    const std::scoped_lock lock(mutex_);
    changed_.notify_one();
  }
  part_.device->wake();
}

StageStats RingWorker::encoder_stats() const {
  return encoder_.meter->stats(part_.device->name(), part_.encoder_range);
}

StageStats RingWorker::decoder_stats() const {
  StageStats stats = decoder_.meter->stats(part_.device->name(), part_.decoder_range);
  stats.stack = "decoder";
  return stats;
}

void RingWorker::run() {
  try {
    part_.device->attach_thread();
    work();
  } catch (...) {
    note_failure();
  }
  settle();
  // Here, on the thread that drives the device that they may belong to.
  now_ = {};
  const std::scoped_lock lock(mutex_);
  steps_.clear();
  encodes_.clear();
}

void RingWorker::work() {
  now_ = begin_next();
  while (now_) {
    Job following;
    if (may_follow(now_) && has_work()) following = begin_next();
    finish();
    now_ = following ? std::move(following) : begin_next();
  }
}

bool RingWorker::has_work() const {
  const std::scoped_lock lock(mutex_);
  return shared_.stopped() || !steps_.empty() || !encodes_.empty();
}

bool RingWorker::may_follow(const Job& job) const {
  const bool chooses = job.step != nullptr && decoder_.next == nullptr;
  return part_.device->asynchronous() && !chooses;
}

RingWorker::Job RingWorker::begin_next() {
  Job job = take();
  try {
    if (job.encode != nullptr) begin_encode(job);
    if (job.step != nullptr) begin_step(job);
    job.mark = part_.device->mark();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return job;
}

RingWorker::Job RingWorker::take() {
  Job job;
  const auto begin = Clock::now();
  if (shared_.options.lend && !has_work()) part_.device->lend_until([this] { return has_work(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return shared_.stopped() || !steps_.empty() || !encodes_.empty(); });
  if (shared_.stopped()) return job;
  if (steps_.empty() || (!encodes_.empty() && steps_let_by_ >= kStepsBeforeEncode)) {
    job.encode = std::move(encodes_.front());
    encodes_.pop_front();
    steps_let_by_ = 0;
  } else {
    job.step = std::move(steps_.front());
    steps_.pop_front();
    if (!encodes_.empty()) ++steps_let_by_;
  }
  lock.unlock();
  waiting_meter().waiting(begin);
  return job;
}

void RingWorker::begin_encode(Job& job) {
  EncodeTravel& travel = *job.encode;
  receive(encoder_, travel, work_of(travel));
  job.since = Clock::now();
  travel.hidden = part_.encoder->forward(travel.batch, std::move(travel.hidden));
  assert(travel.hidden.rows() == travel.batch.n_tokens());
}

void RingWorker::begin_step(Job& job) {
  StepTravel& travel = *job.step;
  receive(decoder_, travel, work_of(travel));
  const auto begin = Clock::now();
  const Tensor source = travel.source.on(*part_.device, *shared_.buffers);
  if (!source.empty()) decoder_.meter->link(begin, work_of(travel));
  job.since = Clock::now();
  travel.hidden = part_.decoder->forward(travel.step, source, std::move(travel.hidden));
  assert(travel.hidden.rows() == travel.step.n_rows());
}

void RingWorker::finish() {
  if (now_.failure) std::rethrow_exception(now_.failure);
  part_.device->wait_for(now_.mark);
  if (now_.encode != nullptr) {
    finish_encode();
  } else {
    finish_step();
  }
}

void RingWorker::finish_encode() {
  EncodeTravel& travel = *now_.encode;
  busy(encoder_, "encode", work_of(travel));
  encoder_.meter->count(travel.batch.n_tokens());
  if (encoder_.next != nullptr) {
    send(encoder_, travel, work_of(travel));
    encoder_.next->put(std::move(now_.encode));
    return;
  }
  const auto begin = Clock::now();
  travel.hidden = to_host_tensor(*part_.device, travel.hidden, now_.mark, *shared_.buffers);
  encoder_.meter->link(begin, work_of(travel));
  const std::unique_ptr<EncodeTravel> done = std::move(now_.encode);
  auto result = std::make_unique<EncodeResult>();
  result->tag = done->tag;
  result->batch = std::move(done->batch);
  result->rows = std::move(done->hidden);
  shared_.deliver({.encode = std::move(result), .step = nullptr});
}

void RingWorker::finish_step() {
  StepTravel& travel = *now_.step;
  busy(decoder_, "step", work_of(travel));
  decoder_.meter->count(travel.step.n_rows());
  if (decoder_.next != nullptr) {
    send(decoder_, travel, work_of(travel));
    decoder_.next->put(std::move(now_.step));
    return;
  }
  const auto begin = Clock::now();
  auto result =
      std::make_unique<StepResult>(head_->run(travel.hidden, travel.step.selected, travel.request));
  result->tag = travel.tag;
  decoder_.meter->busy("choose", begin, work_of(travel));
  now_.step.reset();
  shared_.deliver({.encode = nullptr, .step = std::move(result)});
}

// From when the device could begin with now_ to now.
void RingWorker::busy(const Chain& chain, const char* name, StageMeter::Work work) {
  chain.meter->busy(name, std::max(now_.since, free_since_), work);
  free_since_ = Clock::now();
}

void RingWorker::receive(const Chain& chain, Parcel& parcel, StageMeter::Work work) {
  if (chain.from == nullptr) return;
  const auto begin = Clock::now();
  chain.from->receive(parcel);
  chain.meter->link(begin, work);
}

void RingWorker::send(const Chain& chain, Parcel& parcel, StageMeter::Work work) {
  const auto begin = Clock::now();
  chain.to->send(parcel, now_.mark);
  chain.meter->link(begin, work);
}

// Nothing is under way any more: weights and caches may go. What is thrown now belongs to jobs that
// nobody waits for.
void RingWorker::settle() {
  try {
    part_.device->wait();
  } catch (...) {
    return;
  }
}

void RingWorker::note_failure() {
  if (now_.step != nullptr) {
    shared_.failures.add_current(now_.step->place, decoder_.label, std::move(now_.step->ordinals));
  } else if (now_.encode != nullptr) {
    shared_.failures.add_current(now_.encode->place, encoder_.label, now_.encode->batch.ordinals);
  } else {
    shared_.failures.add_current(0, part_.device->name(), {});
  }
  shared_.stop();
}

StageMeter& RingWorker::waiting_meter() {
  return part_.decoder != nullptr ? *decoder_.meter : *encoder_.meter;
}

}  // namespace quintet
