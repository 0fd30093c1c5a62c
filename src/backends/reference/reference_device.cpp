#include "backends/reference/reference_device.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "backends/reference/plain_math.h"
#include "core/error.h"

namespace quintet {
namespace {

class HostBuffer : public Buffer {
 public:
  HostBuffer(size_t bytes, std::shared_ptr<MemoryCount> count, const void* owner)
      : memory_(bytes), count_(std::move(count)), owner_(owner) {
    count_->add(bytes);
  }
  ~HostBuffer() override { count_->remove(memory_.size()); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  size_t bytes() const override { return memory_.size(); }
  void* host() override { return memory_.data(); }
  const void* owner() const override { return owner_; }

 private:
  std::vector<std::byte> memory_;
  std::shared_ptr<MemoryCount> count_;
  const void* owner_;
};

// Rounded to the dtype asked for, then kept as float32: [rows, d_in].
class ReferenceWeight : public Weight {
 public:
  ReferenceWeight(int64_t rows, int64_t d_in, PackOptions options,
                  std::shared_ptr<MemoryCount> count, const void* owner)
      : rows_(rows), d_in_(d_in), options_(options), count_(std::move(count)), owner_(owner) {
    values_.resize(static_cast<size_t>(rows * d_in));
    count_->add(bytes());
  }
  ~ReferenceWeight() override { count_->remove(bytes()); }
  ReferenceWeight(const ReferenceWeight&) = delete;
  ReferenceWeight& operator=(const ReferenceWeight&) = delete;

  int64_t d_out() const override { return options_.gated ? rows_ / 2 : rows_; }
  int64_t d_in() const override { return d_in_; }
  bool gated() const override { return options_.gated; }
  DType dtype() const override { return options_.dtype; }
  size_t bytes() const override { return values_.size() * sizeof(float); }
  const void* owner() const override { return owner_; }
  float* row(int64_t i) { return values_.data() + i * d_in_; }
  const float* row(int64_t i) const { return values_.data() + i * d_in_; }

 private:
  int64_t rows_;
  int64_t d_in_;
  PackOptions options_;
  std::vector<float> values_;
  std::shared_ptr<MemoryCount> count_;
  const void* owner_;
};

void round_to(DType dtype, float* values, size_t n) {
  if (dtype == DType::kFloat32) return;
  std::vector<uint16_t> narrow_values(n);
  narrow(values, n, dtype, narrow_values.data());
  widen(narrow_values.data(), dtype, n, values);
}

std::unique_ptr<Weight> pack_transposed(std::span<const HostView> parts, PackOptions options,
                                        std::shared_ptr<MemoryCount> count, const void* owner) {
  const int64_t d_in = parts.front().rows();
  std::vector<int64_t> widths;
  int64_t rows = 0;
  for (const HostView& part : parts) {
    widths.push_back(options.n_columns > 0 ? options.n_columns
                                           : part.cols() - options.first_column);
    rows += widths.back();
  }
  auto weight = std::make_unique<ReferenceWeight>(rows, d_in, options, std::move(count), owner);
  int64_t row = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<float> wide(static_cast<size_t>(parts[p].cols()));
    for (int64_t k = 0; k < d_in; ++k) {
      widen(parts[p].row(k), parts[p].dtype, wide.size(), wide.data());
      round_to(options.dtype, wide.data(), wide.size());
      for (int64_t j = 0; j < widths[p]; ++j) {
        weight->row(row + j)[k] = wide[static_cast<size_t>(options.first_column + j)];
      }
    }
    row += widths[p];
    parts[p].release_rows(0, d_in);
  }
  return weight;
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;  // a NaN passes
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGeluQuick:
      return x / (1 + std::exp(-1.702 * x));
  }
  return x;
}

// The sequence that holds row `row` of the batch, as [begin, end).
std::pair<int64_t, int64_t> sequence_of(const MicroBatch& batch, int64_t row) {
  const auto after = std::upper_bound(batch.cu_seqlens.begin(), batch.cu_seqlens.end(), row);
  return {*(after - 1), *after};
}

}  // namespace

void MemoryCount::add(size_t bytes) {
  const size_t now = used_ += bytes;
  size_t peak = peak_;
  while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
  }
}

ReferenceDevice::ReferenceDevice(std::string name) : name_(std::move(name)) {}

MemoryInfo ReferenceDevice::memory() const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return {.total = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page,
          .free = static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * page,
          .used = count_->used(),
          .peak = count_->peak()};
}

Tensor ReferenceDevice::allocate(int64_t rows, int64_t cols, DType dtype) {
  assert(rows >= 0 && cols >= 0);
  const size_t bytes = static_cast<size_t>(rows) * static_cast<size_t>(cols) * size_of(dtype);
  try {
    return Tensor(std::make_shared<HostBuffer>(bytes, count_, this), rows, cols, cols, dtype);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kMemory, "{}: a tensor of [{}, {}] {} needs {} bytes, which cannot be had",
         name_, rows, cols, name_of(dtype), bytes);
  }
}

void ReferenceDevice::upload(const void* host, const Tensor& dst) {
  if (dst.empty()) return;
  const size_t size = size_of(dst.dtype());
  auto* to = static_cast<std::byte*>(dst.buffer()->host());
  const auto* from = static_cast<const std::byte*>(host);
  for (int64_t i = 0; i < dst.rows(); ++i) {
    std::memcpy(to + (dst.offset() + i * dst.stride()) * size, from + i * dst.cols() * size,
                dst.cols() * size);
  }
}

void ReferenceDevice::download(const Tensor& src, void* host) {
  if (src.empty()) return;
  const size_t size = size_of(src.dtype());
  const auto* from = static_cast<const std::byte*>(src.buffer()->host());
  auto* to = static_cast<std::byte*>(host);
  for (int64_t i = 0; i < src.rows(); ++i) {
    std::memcpy(to + i * src.cols() * size, from + (src.offset() + i * src.stride()) * size,
                src.cols() * size);
  }
}

std::unique_ptr<Weight> ReferenceDevice::pack(std::span<const HostView> parts,
                                              PackOptions options) {
  if (options.transposed) return pack_transposed(parts, options, count_, this);
  int64_t rows = 0;
  for (const HostView& part : parts) rows += part.rows();
  const int64_t d_in = parts.front().cols();
  auto weight = std::make_unique<ReferenceWeight>(rows, d_in, options, count_, this);
  int64_t row = 0;
  for (const HostView& part : parts) {
    for (int64_t i = 0; i < part.rows(); ++i, ++row) {
      widen(part.row(i), part.dtype, static_cast<size_t>(d_in), weight->row(row));
      round_to(options.dtype, weight->row(row), static_cast<size_t>(d_in));
    }
    part.release_rows(0, part.rows());
  }
  return weight;
}

void ReferenceDevice::embedding(std::span<const int32_t> ids, const Tensor& table, const Tensor& y,
                                bool accumulate) {
  const size_t size = size_of(table.dtype());
  std::vector<float> row(static_cast<size_t>(table.cols()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto* base = static_cast<const std::byte*>(table.buffer()->host());
    widen(base + (table.offset() + ids[i] * table.stride()) * size, table.dtype(), row.size(),
          row.data());
    float* out = y.row<float>(static_cast<int64_t>(i));
    for (size_t j = 0; j < row.size(); ++j) out[j] = accumulate ? out[j] + row[j] : row[j];
  }
}

void ReferenceDevice::weight_rows(std::span<const int32_t> ids, const Weight& w, const Tensor& y) {
  const auto& weight = dynamic_cast<const ReferenceWeight&>(w);
  for (size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(weight.row(ids[i]), weight.d_in(), y.row<float>(static_cast<int64_t>(i)));
  }
}

void ReferenceDevice::rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) {
  for (int64_t i = 0; i < x.rows(); ++i) {
    const float* in = x.row<float>(i);
    const double mean = dot(in, in, x.cols()) / static_cast<double>(x.cols());
    const double factor = 1 / std::sqrt(mean + eps);
    const float* scale = weight.row<float>(0);
    float* out = y.row<float>(i);
    for (int64_t j = 0; j < x.cols(); ++j) out[j] = static_cast<float>(scale[j] * in[j] * factor);
  }
}

void ReferenceDevice::layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                 float eps, const Tensor& y) {
  const auto n = static_cast<double>(x.cols());
  for (int64_t i = 0; i < x.rows(); ++i) {
    const float* in = x.row<float>(i);
    double mean = 0;
    for (int64_t j = 0; j < x.cols(); ++j) mean += in[j] / n;
    double variance = 0;
    for (int64_t j = 0; j < x.cols(); ++j) variance += (in[j] - mean) * (in[j] - mean) / n;
    const double factor = 1 / std::sqrt(variance + eps);
    const float* scale = weight.row<float>(0);
    const float* shift = bias.row<float>(0);
    float* out = y.row<float>(i);
    for (int64_t j = 0; j < x.cols(); ++j) {
      out[j] = static_cast<float>(scale[j] * ((in[j] - mean) * factor) + shift[j]);
    }
  }
}

void ReferenceDevice::linear(const Tensor& x, const Weight& w, const Epilogue& epilogue,
                             const Tensor& y) {
  const auto& weight = dynamic_cast<const ReferenceWeight&>(w);
  for (int64_t i = 0; i < x.rows(); ++i) {
    const float* in = x.row<float>(i);
    float* out = y.row<float>(i);
    for (int64_t j = 0; j < weight.d_out(); ++j) {
      double sum = epilogue.scale * dot(in, weight.row(j), weight.d_in());
      if (epilogue.bias) sum += epilogue.bias.row<float>(0)[j];
      double value = activate(epilogue.activation, sum);
      if (weight.gated()) value *= dot(in, weight.row(weight.d_out() + j), weight.d_in());
      out[j] = static_cast<float>(epilogue.accumulate ? out[j] + value : value);
    }
  }
}

void ReferenceDevice::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                const Tensor& position_bias, const MicroBatch& batch,
                                int64_t first_row, const AttentionArgs& args, const Tensor& y) {
  const int64_t zero = (position_bias.cols() - 1) / 2;  // where the table keeps distance 0
  std::vector<double> scores;
  for (int64_t i = 0; i < q.rows(); ++i) {
    const int64_t row = first_row + i;
    const auto [begin, end] = sequence_of(batch, row);
    for (int64_t head = 0; head < args.n_heads; ++head) {
      const int64_t column = head * args.d_kv;
      scores.assign(static_cast<size_t>(end - begin), -std::numeric_limits<double>::infinity());
      for (int64_t key = begin; key < end; ++key) {
        const int64_t distance = batch.positions[key] - batch.positions[row];
        if (args.causal && distance > 0) continue;
        double score = dot(q.row<float>(i) + column, k.row<float>(key) + column, args.d_kv);
        score *= args.scale;
        if (position_bias) score += position_bias.row<float>(head)[distance + zero];
        scores[static_cast<size_t>(key - begin)] = score;
      }
      const auto value = [&, first = begin](size_t j) {
        return v.row<float>(first + static_cast<int64_t>(j)) + column;
      };
      weigh(scores, value, args.d_kv, y.row<float>(i) + column);
    }
  }
}

void ReferenceDevice::pool(const Tensor& x, std::span<const int32_t> begin,
                           std::span<const int32_t> end, Pooling pooling, bool normalize,
                           const Tensor& y) {
  std::vector<double> sum(static_cast<size_t>(x.cols()));
  for (size_t s = 0; s < begin.size(); ++s) {
    int64_t first = begin[s];
    int64_t last = end[s];
    if (pooling == Pooling::kFirst) last = std::min(last, first + 1);
    if (pooling == Pooling::kLast) first = std::max(first, last - 1);
    std::fill(sum.begin(), sum.end(), 0);
    for (int64_t i = first; i < last; ++i) {
      const float* row = x.row<float>(i);
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += row[j];
    }
    double divisor = static_cast<double>(std::max<int64_t>(last - first, 1));
    if (normalize) {
      double squares = 0;
      for (const double value : sum) squares += value * value;
      if (squares > 0) divisor = std::sqrt(squares);
    }
    float* out = y.row<float>(static_cast<int64_t>(s));
    for (size_t j = 0; j < sum.size(); ++j) out[j] = static_cast<float>(sum[j] / divisor);
  }
}

}  // namespace quintet
