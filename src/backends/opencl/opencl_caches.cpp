// Caches of keys and values: pages in one buffer, what is written to them, and attention of single
// rows over them. See kernels/caches.cl for the layout of a page.
#include <algorithm>
#include <cassert>
#include <string>
#include <vector>

#include "backends/opencl/attention_form.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"

namespace quintet::opencl {
namespace {

class OpenclKvCache final : public KvCache {
 public:
  OpenclKvCache(const KvShape& shape, int64_t n_pages, Session& session, const void* owner)
      : shape_(shape), n_pages_(n_pages), owner_(owner) {
    const auto bytes = static_cast<size_t>(n_pages * shape.bytes_per_page());
    if (bytes == 0) return;
    buffer_ = session.allocate(bytes, "a cache of " + std::to_string(n_pages) + " pages");
  }

  KvShape shape() const override { return shape_; }
  int64_t n_pages() const override { return n_pages_; }
  size_t bytes() const override { return buffer_ == nullptr ? 0 : buffer_->bytes(); }
  const void* owner() const override { return owner_; }
  const cl::Buffer& memory() const { return buffer_->memory(); }

 private:
  KvShape shape_;
  int64_t n_pages_;
  std::shared_ptr<DeviceBuffer> buffer_;  // null: no pages
  const void* owner_;
};

std::string defines_of(const KvShape& shape) {
  return "-D D_KV=" + std::to_string(shape.d_kv) + " -D HEADS=" + std::to_string(shape.n_heads) +
         " -D PAGE=" + std::to_string(kPageTokens);
}

// Vectors of whole pages' keys; 0: groups.
int64_t cached_lanes(const Limits& limits) { return std::min<int64_t>(vector_lanes(limits), 8); }

// Work-items of a group: about one for each column and not much more than one for each key.
int64_t cached_group(const Limits& limits, int64_t d_kv) {
  constexpr int64_t kMost = 128;
  const auto most = static_cast<int64_t>(std::max<size_t>(limits.work_group, 1));
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(d_kv)));
  return std::min({std::clamp<int64_t>(wanted, 32, kMost), most});
}

struct CachedRow {
  cl_int first_page;  // of its table, in the list of pages
  cl_int n_keys;
};

}  // namespace

std::unique_ptr<KvCache> OpenclDevice::make_kv_cache(const KvShape& shape, int64_t n_pages) {
  assert(n_pages >= 0 && shape.n_heads > 0 && shape.d_kv > 0);
  return std::make_unique<OpenclKvCache>(shape, n_pages, *session_, this);
}

void OpenclDevice::kv_copy(std::span<const PageCopy> copies, KvCache& cache) {
  if (copies.empty()) return;
  const auto& pages = dynamic_cast<const OpenclKvCache&>(cache);
  Session& session = *session_;
  std::vector<cl_int> pairs;
  for (const PageCopy& copy : copies) {
    pairs.push_back(copy.from);
    pairs.push_back(copy.to);
  }
  const KvShape shape = cache.shape();
  const auto floats = static_cast<size_t>(shape.bytes_per_page()) / sizeof(float);
  session.launch(session.kernel("caches", "copy_pages", defines_of(shape)), {floats, 1, 1},
                 {0, 0, 0}, pages.memory(), session.stage(std::span<const cl_int>(pairs)),
                 static_cast<cl_int>(copies.size()));
}

void OpenclDevice::kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                            KvCache& cache) {
  assert(k.rows() == static_cast<int64_t>(slots.size()) && v.rows() == k.rows());
  if (slots.empty()) return;
  const auto& pages = dynamic_cast<const OpenclKvCache&>(cache);
  Session& session = *session_;
  session.launch(session.kernel("caches", "write_rows", defines_of(cache.shape())),
                 {static_cast<size_t>(k.cols()), slots.size(), 1}, {0, 0, 0}, pages.memory(),
                 MatrixArg(k), MatrixArg(v), session.stage(slots));
}

void OpenclDevice::cached_attention(const Tensor& q, const KvCache& cache, const PageTable& pages,
                                    const Tensor& position_bias, const AttentionArgs& args,
                                    const Tensor& y) {
  assert(q.rows() == y.rows() && q.rows() == static_cast<int64_t>(pages.n_keys.size()));
  if (q.empty()) return;
  Session& session = *session_;
  std::vector<CachedRow> rows;
  for (size_t row = 0; row < pages.n_keys.size(); ++row) {
    rows.push_back({pages.begin[static_cast<size_t>(pages.table[row])], pages.n_keys[row]});
  }
  const int64_t lanes = cached_lanes(session.limits());
  const int64_t group = lanes > 0 ? 1 : cached_group(session.limits(), args.d_kv);
  cl::Kernel& kernel = session.kernel(
      "caches", lanes > 0 ? "attend_cached_lanes" : "attend_cached_groups",
      defines_of(cache.shape()) + (lanes > 0 ? " -D LANES=" + std::to_string(lanes)
                                             : " -D GROUP=" + std::to_string(group)));
  const bool biased = !position_bias.empty();
  session.launch(
      kernel, {rows.size() * static_cast<size_t>(group), static_cast<size_t>(args.n_heads), 1},
      {static_cast<size_t>(group), 1, 1}, MatrixArg(q),
      dynamic_cast<const OpenclKvCache&>(cache).memory(),
      session.stage(std::span<const int32_t>(pages.pages)),
      session.stage(std::span<const CachedRow>(rows)), MatrixArg(biased ? position_bias : q),
      static_cast<cl_int>(biased ? position_bias.cols() : 0), args.scale, MatrixArg(y));
}

}  // namespace quintet::opencl
