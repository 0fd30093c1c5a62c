// Attention of an OpenCL device beside that of the CPU backend, in turns, in GFLOP/s of processor
// time, so that other programs disturb little. Both should have one core:
//   quintet_opencl_attention_bench [opencl device] [CPU device] [rounds]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/device.h"
#include "backends/registry.h"

namespace quintet {
namespace {

constexpr int64_t kHeads = 8;
constexpr int64_t kTokens = 4096;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<float> numbers(int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// Equal sequences of one length, q, k and v as a stacked product leaves them.
struct Problem {
  Problem(Device& on, int64_t length, int64_t d_kv, bool causal)
      : device(on), args{.n_heads = kHeads, .d_kv = d_kv, .causal = causal} {
    const int64_t n_seqs = std::max<int64_t>(1, kTokens / length);
    const int64_t n = n_seqs * length;
    const int64_t inner = kHeads * d_kv;
    batch.cu_seqlens = {0};
    for (int64_t s = 0; s < n_seqs; ++s) {
      for (int32_t i = 0; i < length; ++i) batch.positions.push_back(i);
      batch.ordinals.push_back(batch.ordinals.size());
      batch.cu_seqlens.push_back(static_cast<int32_t>(batch.positions.size()));
    }
    batch.tokens.resize(batch.positions.size());
    batch.max_len = static_cast<int32_t>(length);
    qkv = device.allocate(n, 3 * inner);
    device.upload(numbers(n * 3 * inner).data(), qkv);
    bias = device.allocate(kHeads, 2 * length - 1);
    device.upload(numbers(kHeads * (2 * length - 1)).data(), bias);
    y = device.allocate(n, inner);
    operations = 4.0 * static_cast<double>(n * length * inner);
  }

  double seconds() const {
    const int64_t inner = y.cols();
    const double start = processor_seconds();
    device.attention(qkv.columns(0, inner), qkv.columns(inner, inner),
                     qkv.columns(2 * inner, inner), bias, batch, 0, args, y);
    device.wait();
    return processor_seconds() - start;
  }

  Device& device;
  AttentionArgs args;
  MicroBatch batch;
  Tensor qkv;
  Tensor bias;
  Tensor y;
  double operations = 0;
};

void compare(Device& first, Device& second, int64_t length, int64_t d_kv, bool causal, int rounds) {
  const Problem one(first, length, d_kv, causal);
  const Problem other(second, length, d_kv, causal);
  one.seconds();  // compiles the kernel
  other.seconds();
  double best = 1e9;
  double other_best = 1e9;
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    const double took = one.seconds();
    const double other_took = other.seconds();
    best = std::min(best, took);
    other_best = std::min(other_best, other_took);
    ratios.push_back(other_took / took);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("length %4d d_kv %3d%s: %6.1f and %6.1f GFLOP/s, %.2f (median of rounds %.2f)\n",
              static_cast<int>(length), static_cast<int>(d_kv), causal ? " causal" : "",
              one.operations / best / 1e9, other.operations / other_best / 1e9, other_best / best,
              ratios[ratios.size() / 2]);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const auto first = open_device(argc > 1 ? argv[1] : "opencl:0/2[0]");
  const auto second = open_device(argc > 2 ? argv[2] : "cpu[0]");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 20;
  for (const int64_t d_kv : {64, 128}) {
    for (const int64_t length : {64, 300, 4000}) {
      compare(*first, *second, length, d_kv, false, rounds);
    }
  }
  compare(*first, *second, 300, 64, true, rounds);
  return 0;
}

}  // namespace
}  // namespace quintet

int main(int argc, char** argv) { return quintet::run(argc, argv); }
