#include "backends/cpu/logits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/decoding_kernels.h"

namespace quintet {
namespace {

// Columns whose sum is taken at once. The same on all machines: it decides the order of the sums.
constexpr size_t kChunk = 8192;

// log(x) within 1 ulp for x >= 1, infinity and NaN, in the same operations on every device:
// x = 2^n (1 + f), 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 p(f).
float log_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t exponent = (bits - 0x3F3504F3U) >> 23;
  const auto n = static_cast<float>(exponent);
  const float f = std::bit_cast<float>(bits - (exponent << 23)) - 1.0F;
  const float square = f * f;
  float p = -0x1.38b582p-4F;
  for (const float c : {0x1.055b6cp-3F, -0x1.0d8542p-3F, 0x1.22da1cp-3F, -0x1.547244p-3F,
                        0x1.99a008p-3F, -0x1.000226p-2F, 0x1.555554p-2F}) {
    p = std::fma(p, f, c);
  }
  float rest = std::fma(f * square, p, n * 1.42860677e-6F);
  rest = std::fma(-0.5F, square, rest);
  const float log = std::fma(n, 0x1.62e4p-1F, f + rest);
  return x < std::numeric_limits<float>::infinity() ? log : x;
}

class LogSoftmax {
 public:
  LogSoftmax(const Tensor& x, Isa isa)
      : x_(x),
        kernels_(logit_kernels(isa)),
        n_chunks_((static_cast<size_t>(x.cols()) + kChunk - 1) / kChunk),
        max_(static_cast<size_t>(x.rows()) * n_chunks_),
        sum_(max_.size()) {}

  size_t n_chunks() const { return n_chunks_; }

  // To be done for all chunks of a row, one after the other.
  static constexpr int kSteps = 3;
  void step(int number, size_t row, size_t chunk) {
    const size_t begin = chunk * kChunk;
    const size_t n = std::min(kChunk, static_cast<size_t>(x_.cols()) - begin);
    float* x = x_.row<float>(static_cast<int64_t>(row)) + begin;
    const auto of_row = [&](const std::vector<float>& values) {
      return std::span(values).subspan(row * n_chunks_, n_chunks_);
    };
    if (number == 0) {
      max_[row * n_chunks_ + chunk] = kernels_.max(x, n);
      return;
    }
    const float max = std::ranges::max(of_row(max_));
    if (number == 1) {
      sum_[row * n_chunks_ + chunk] = kernels_.sum_of_exp(x, n, max);
      return;
    }
    float sum = 0.0F;
    for (const float part : of_row(sum_)) sum += part;
    kernels_.subtract(max, log_of(sum), n, x);
  }

 private:
  const Tensor& x_;
  const LogitKernels& kernels_;
  size_t n_chunks_;
  std::vector<float> max_;  // [rows, n_chunks]
  std::vector<float> sum_;
};

bool better(float a, float b) { return std::isnan(b) ? !std::isnan(a) : a > b; }

// Few of many: the best so far are kept in order, and vectors look for what beats the last of them.
void few_best(const float* x, size_t n, size_t k, const LogitKernels& kernels, int32_t* ids,
              float* values) {
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    if (count == k) {
      const float last = values[k - 1];
      if (std::isnan(last)) {
        while (i < n && std::isnan(x[i])) ++i;
      } else {
        i = kernels.find_above(x, i, n, last);
      }
      if (i == n) return;
    } else {
      ++count;
    }
    size_t at = count - 1;
    for (; at > 0 && better(x[i], values[at - 1]); --at) {
      values[at] = values[at - 1];
      ids[at] = ids[at - 1];
    }
    values[at] = x[i];
    ids[at] = static_cast<int32_t>(i);
  }
}

// Rises as x falls; equal for equal numbers, NaN last.
uint32_t falling_key(float x) {
  if (std::isnan(x)) return 0xFFFFFFFFU;
  const auto bits = std::bit_cast<uint32_t>(x + 0.0F);  // no negative zero
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000U);
}

// Many: the whole row is sorted, digit by digit from the lowest, which keeps equals in order.
void many_best(const float* x, size_t n, size_t k, int32_t* ids, float* values) {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  struct Entry {
    uint32_t key;
    int32_t id;
  };
  auto* from = reinterpret_cast<Entry*>(thread_scratch(2 * n * sizeof(Entry)));
  Entry* to = from + n;
  for (size_t i = 0; i < n; ++i) from[i] = {falling_key(x[i]), static_cast<int32_t>(i)};
  for (int shift = 0; shift < 32; shift += kDigitBits) {
    const auto digit = [&](const Entry& entry) { return entry.key >> shift & (kDigits - 1); };
    std::array<size_t, kDigits + 1> begin{};
    for (size_t i = 0; i < n; ++i) ++begin[digit(from[i]) + 1];
    for (size_t i = 0; i < kDigits; ++i) begin[i + 1] += begin[i];
    for (size_t i = 0; i < n; ++i) to[begin[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  for (size_t i = 0; i < k; ++i) {
    ids[i] = from[i].id;
    values[i] = x[from[i].id];
  }
}

}  // namespace

void run_log_softmax(const Tensor& x, Isa isa, ThreadPool& pool) {
  LogSoftmax work(x, isa);
  const auto chunks = static_cast<int64_t>(work.n_chunks());
  if (x.rows() >= pool.width()) {  // a row stays in its thread's cache
    pool.parallel_for(x.rows(), [&](int64_t row) {
      for (int step = 0; step < LogSoftmax::kSteps; ++step) {
        for (size_t chunk = 0; chunk < work.n_chunks(); ++chunk) {
          work.step(step, static_cast<size_t>(row), chunk);
        }
      }
    });
    return;
  }
  for (int step = 0; step < LogSoftmax::kSteps; ++step) {
    pool.parallel_for(x.rows() * chunks, [&](int64_t item) {
      work.step(step, static_cast<size_t>(item / chunks), static_cast<size_t>(item % chunks));
    });
  }
}

void run_top_k(const Tensor& x, int64_t k, std::span<int32_t> ids, std::span<float> values, Isa isa,
               ThreadPool& pool) {
  constexpr size_t kFew = 256;
  const auto n = static_cast<size_t>(x.cols());
  const auto count = static_cast<size_t>(k);
  pool.parallel_for(x.rows(), [&](int64_t row) {
    const size_t at = static_cast<size_t>(row) * count;
    if (count <= kFew) {
      few_best(x.row<float>(row), n, count, logit_kernels(isa), &ids[at], &values[at]);
    } else {
      many_best(x.row<float>(row), n, count, &ids[at], &values[at]);
    }
  });
}

}  // namespace quintet
