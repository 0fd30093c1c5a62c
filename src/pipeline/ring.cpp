#include "pipeline/ring.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/error.h"
#include "pipeline/ring_worker.h"

namespace quintet {
namespace {

struct Stack {
  const char* name;
  bool (*has)(const RingDevice& device);
  StageRange (*range)(const RingDevice& device);
  void (*connect)(RingWorker& from, RingWorker& to);
};

constexpr Stack kEncoder = {
    .name = "encoder",
    .has = [](const RingDevice& device) { return device.encoder != nullptr; },
    .range = [](const RingDevice& device) { return device.encoder_range; },
    .connect = [](RingWorker& from, RingWorker& to) { from.connect_encoder(to); }};
constexpr Stack kDecoder = {
    .name = "decoder",
    .has = [](const RingDevice& device) { return device.decoder != nullptr; },
    .range = [](const RingDevice& device) { return device.decoder_range; },
    .connect = [](RingWorker& from, RingWorker& to) { from.connect_decoder(to); }};

void check(const std::vector<RingDevice>& devices) {
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    const std::string name = device->device->name();
    const auto same = [&](const RingDevice& other) { return other.device == device->device; };
    if (std::any_of(devices.begin(), device, same)) {
      fail(ErrorKind::kUsage,
           "{}: stands twice; give it one contiguous run of blocks of each stack", name);
    }
    if (device->encoder == nullptr && device->decoder == nullptr) {
      fail(ErrorKind::kUsage, "{}: has no blocks of any stack", name);
    }
  }
}

// The workers that have a stage of the stack, in the order of its blocks, joined by links.
std::vector<RingWorker*> chain(std::deque<RingWorker>& workers, const Stack& stack) {
  std::vector<RingWorker*> chain;
  for (RingWorker& worker : workers) {
    if (stack.has(worker.part())) chain.push_back(&worker);
  }
  const auto range = [&](const RingWorker* worker) { return stack.range(worker->part()); };
  std::stable_sort(chain.begin(), chain.end(), [&](const RingWorker* a, const RingWorker* b) {
    return range(a).first_block < range(b).first_block;
  });
  int64_t block = 0;
  for (RingWorker* const worker : chain) {
    const StageRange blocks = range(worker);
    if (blocks.first_block != block || blocks.last_block <= block) {
      fail(ErrorKind::kUsage, "{}: has {} blocks [{}, {}), a run from block {} is expected",
           worker->part().device->name(), stack.name, blocks.first_block, blocks.last_block, block);
    }
    block = blocks.last_block;
  }
  for (size_t i = 0; i + 1 < chain.size(); ++i) stack.connect(*chain[i], *chain[i + 1]);
  return chain;
}

}  // namespace

struct Ring::Impl {
  Impl(std::vector<RingDevice> parts, const RingOptions& options) : shared(options) {
    for (RingDevice& part : parts) workers.emplace_back(std::move(part), shared);
    encoder = chain(workers, kEncoder);
    decoder = chain(workers, kDecoder);
    if (decoder.empty()) fail(ErrorKind::kUsage, "a ring needs at least one decoder stage");
  }
  ~Impl() {
    shared.abort();
    for (RingWorker& worker : workers) worker.join();  // all, before the first is destroyed
  }

  RingShared shared;
  std::deque<RingWorker> workers;
  std::vector<RingWorker*> encoder;  // in the order of the blocks
  std::vector<RingWorker*> decoder;
  uint64_t n_jobs = 0;
};

Ring::Ring(std::vector<RingDevice> devices, RingOptions options) {
  check(devices);
  impl_ = std::make_unique<Impl>(std::move(devices), options);
  for (RingWorker& worker : impl_->workers) worker.start();
}

Ring::~Ring() = default;

void Ring::submit(EncodeJob job) {
  if (impl_->encoder.empty()) fail(ErrorKind::kUsage, "an encode in a ring without an encoder");
  if (job.batch.n_tokens() == 0) fail(ErrorKind::kUsage, "a micro-batch without tokens");
  auto travel = std::make_unique<EncodeTravel>();
  travel->tag = job.tag;
  travel->place = impl_->n_jobs++;
  travel->batch = std::move(job.batch);
  impl_->shared.begin_job();
  impl_->encoder.front()->put(std::move(travel));
}

void Ring::submit(StepJob job) {
  if (job.step.n_rows() == 0) fail(ErrorKind::kUsage, "a step without rows");
  auto travel = std::make_unique<StepTravel>();
  travel->tag = job.tag;
  travel->place = impl_->n_jobs++;
  travel->step = std::move(job.step);
  travel->source = SourceRows(std::move(job.sources));
  travel->request = std::move(job.request);
  travel->ordinals = std::move(job.ordinals);
  impl_->shared.begin_job();
  impl_->decoder.front()->put(std::move(travel));
}

RingResult Ring::wait() { return impl_->shared.wait(); }

size_t Ring::in_flight() const { return impl_->shared.in_flight(); }

void Ring::abort() { impl_->shared.abort(); }

size_t Ring::n_encoder_stages() const { return impl_->encoder.size(); }

size_t Ring::n_decoder_stages() const { return impl_->decoder.size(); }

std::vector<StageStats> Ring::stats() const {
  std::vector<StageStats> stats;
  for (const RingWorker* worker : impl_->encoder) stats.push_back(worker->encoder_stats());
  for (const RingWorker* worker : impl_->decoder) stats.push_back(worker->decoder_stats());
  return stats;
}

}  // namespace quintet
