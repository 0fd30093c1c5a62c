#include "pipeline/ring_worker.h"

#include <fmt/format.h>

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
    while (work()) {
    }
  } catch (...) {
    note_failure();
  }
  // Here, on the thread that drives the device that they may belong to.
  step_.reset();
  encode_.reset();
  const std::scoped_lock lock(mutex_);
  steps_.clear();
  encodes_.clear();
}

bool RingWorker::work() {
  take();
  if (step_ != nullptr) {
    step();
  } else if (encode_ != nullptr) {
    encode();
  } else {
    return false;
  }
  return true;
}

bool RingWorker::has_work() const {
  const std::scoped_lock lock(mutex_);
  return shared_.stopped() || !steps_.empty() || !encodes_.empty();
}

void RingWorker::take() {
  const auto begin = Clock::now();
  if (shared_.options.lend && !has_work()) part_.device->lend_until([this] { return has_work(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return shared_.stopped() || !steps_.empty() || !encodes_.empty(); });
  if (shared_.stopped()) return;
  if (steps_.empty() || (!encodes_.empty() && steps_let_by_ >= kStepsBeforeEncode)) {
    encode_ = std::move(encodes_.front());
    encodes_.pop_front();
    steps_let_by_ = 0;
  } else {
    step_ = std::move(steps_.front());
    steps_.pop_front();
    if (!encodes_.empty()) ++steps_let_by_;
  }
  lock.unlock();
  waiting_meter().waiting(begin);
}

void RingWorker::encode() {
  EncodeTravel& travel = *encode_;
  receive(encoder_, travel, work_of(travel));
  const auto begin = Clock::now();
  travel.hidden = part_.encoder->forward(travel.batch, std::move(travel.hidden));
  part_.device->wait();
  assert(travel.hidden.rows() == travel.batch.n_tokens());
  encoder_.meter->busy("encode", begin, work_of(travel));
  encoder_.meter->count(travel.batch.n_tokens());
  if (encoder_.next != nullptr) {
    send(encoder_, travel, work_of(travel));
    encoder_.next->put(std::move(encode_));
    return;
  }
  const auto begin_copy = Clock::now();
  travel.hidden = to_host_tensor(*part_.device, travel.hidden, *shared_.buffers);
  encoder_.meter->link(begin_copy, work_of(travel));
  const std::unique_ptr<EncodeTravel> done = std::move(encode_);
  auto result = std::make_unique<EncodeResult>();
  result->tag = done->tag;
  result->batch = std::move(done->batch);
  result->rows = std::move(done->hidden);
  shared_.deliver({.encode = std::move(result), .step = nullptr});
}

void RingWorker::step() {
  StepTravel& travel = *step_;
  receive(decoder_, travel, work_of(travel));
  auto begin = Clock::now();
  const Tensor source = travel.source.on(*part_.device);
  if (!source.empty()) decoder_.meter->link(begin, work_of(travel));
  begin = Clock::now();
  travel.hidden = part_.decoder->forward(travel.step, source, std::move(travel.hidden));
  part_.device->wait();
  assert(travel.hidden.rows() == travel.step.n_rows());
  decoder_.meter->busy("step", begin, work_of(travel));
  decoder_.meter->count(travel.step.n_rows());
  if (decoder_.next != nullptr) {
    send(decoder_, travel, work_of(travel));
    decoder_.next->put(std::move(step_));
    return;
  }
  begin = Clock::now();
  auto result =
      std::make_unique<StepResult>(head_->run(travel.hidden, travel.step.selected, travel.request));
  result->tag = travel.tag;
  decoder_.meter->busy("choose", begin, work_of(travel));
  step_.reset();
  shared_.deliver({.encode = nullptr, .step = std::move(result)});
}

void RingWorker::receive(const Chain& chain, Parcel& parcel, StageMeter::Work work) {
  if (chain.from == nullptr) return;
  const auto begin = Clock::now();
  chain.from->receive(parcel);
  chain.meter->link(begin, work);
}

void RingWorker::send(const Chain& chain, Parcel& parcel, StageMeter::Work work) {
  const auto begin = Clock::now();
  chain.to->send(parcel);
  chain.meter->link(begin, work);
}

void RingWorker::note_failure() {
  if (step_ != nullptr) {
    shared_.failures.add_current(step_->place, decoder_.label, std::move(step_->ordinals));
  } else if (encode_ != nullptr) {
    shared_.failures.add_current(encode_->place, encoder_.label, encode_->batch.ordinals);
  } else {
    shared_.failures.add_current(0, part_.device->name(), {});
  }
  shared_.stop();
}

StageMeter& RingWorker::waiting_meter() {
  return part_.decoder != nullptr ? *decoder_.meter : *encoder_.meter;
}

}  // namespace quintet
