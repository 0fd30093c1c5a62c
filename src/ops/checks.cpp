#include "ops/checks.h"

#include "core/error.h"

namespace quintet::ops {
namespace {

[[noreturn]] void misplaced(std::string_view op, std::string_view what, const Device& device) {
  fail(ErrorKind::kUsage, "{}: {} is on another device than {}; copy it there first", op, what,
       device.name());
}

}  // namespace

void check_shape(std::string_view op, std::string_view what, const Tensor& tensor, int64_t rows,
                 int64_t cols, DType dtype) {
  if (tensor && tensor.rows() == rows && tensor.cols() == cols && tensor.dtype() == dtype) return;
  fail(ErrorKind::kUsage, "{}: {} is [{}, {}] {}, expected [{}, {}] {}", op, what, tensor.rows(),
       tensor.cols(), name_of(tensor.dtype()), rows, cols, name_of(dtype));
}

void check_placement(std::string_view op, std::string_view what, const Device& device,
                     const Tensor& tensor) {
  if (!tensor) return;
  const void* owner = tensor.buffer()->owner();
  const bool shared = device.host_memory() && tensor.buffer()->host() != nullptr;
  if (owner != nullptr && owner != &device && !shared) misplaced(op, what, device);
}

void check_placement(std::string_view op, std::string_view what, const Device& device,
                     const Weight& weight) {
  if (weight.owner() != nullptr && weight.owner() != &device) misplaced(op, what, device);
}

void check_placement(std::string_view op, std::string_view what, const Device& device,
                     const KvCache& cache) {
  if (cache.owner() != nullptr && cache.owner() != &device) misplaced(op, what, device);
}

void check_indices(std::string_view op, std::string_view what, std::span<const int32_t> indices,
                   int64_t end) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= end) {
      fail(ErrorKind::kUsage, "{}: {} {} of number {} is outside 0 .. {}", op, what, indices[i], i,
           end - 1);
    }
  }
}

void check_weight(std::string_view op, std::string_view what, const Device& device,
                  const Weight& weight, int64_t d_out, int64_t d_in) {
  check_placement(op, what, device, weight);
  if (weight.d_out() == d_out && weight.d_in() == d_in) return;
  fail(ErrorKind::kUsage, "{}: {} takes {} columns to {}, expected {} to {}", op, what,
       weight.d_in(), weight.d_out(), d_in, d_out);
}

void check_batch(std::string_view op, const MicroBatch& batch) {
  const auto& starts = batch.cu_seqlens;
  if (batch.positions.size() != batch.tokens.size() || starts.empty() || starts.front() != 0 ||
      starts.back() != batch.n_tokens()) {
    fail(ErrorKind::kUsage,
         "{}: a batch of {} tokens has {} positions and {} sequence starts, the last of them {}",
         op, batch.n_tokens(), batch.positions.size(), starts.size(),
         starts.empty() ? 0 : starts.back());
  }
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    if (starts[s] > starts[s + 1]) {
      fail(ErrorKind::kUsage, "{}: sequence {} of the batch ends before it starts", op, s);
    }
  }
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    int32_t least = 0;
    for (int32_t i = starts[s]; i < starts[s + 1]; ++i) {
      if (batch.positions[i] < least || batch.positions[i] >= batch.max_len) {
        fail(ErrorKind::kUsage, "{}: position {} of token {} is outside {} .. {}", op,
             batch.positions[i], i, least, batch.max_len - 1);
      }
      least = batch.positions[i] + 1;
    }
  }
}

}  // namespace quintet::ops
