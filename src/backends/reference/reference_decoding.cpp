// The reference's ops for decoding: caches of keys and values, and the choice of tokens.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "backends/reference/plain_math.h"
#include "backends/reference/reference_device.h"
#include "core/error.h"

namespace quintet {
namespace {

// Keys and values as rows [n_heads * d_kv], one per slot.
class ReferenceKvCache : public KvCache {
 public:
  ReferenceKvCache(const KvShape& shape, int64_t n_pages, std::shared_ptr<MemoryCount> count,
                   const void* owner)
      : shape_(shape),
        inner_(shape.n_heads * shape.d_kv),
        n_pages_(n_pages),
        keys_(static_cast<size_t>(n_pages * kPageTokens * inner_)),
        values_(keys_.size()),
        count_(std::move(count)),
        owner_(owner) {
    count_->add(bytes());
  }
  ~ReferenceKvCache() override { count_->remove(bytes()); }
  ReferenceKvCache(const ReferenceKvCache&) = delete;
  ReferenceKvCache& operator=(const ReferenceKvCache&) = delete;

  KvShape shape() const override { return shape_; }
  int64_t n_pages() const override { return n_pages_; }
  size_t bytes() const override { return (keys_.size() + values_.size()) * sizeof(float); }
  const void* owner() const override { return owner_; }

  int64_t inner() const { return inner_; }
  float* key(int64_t slot) { return keys_.data() + slot * inner_; }
  float* value(int64_t slot) { return values_.data() + slot * inner_; }
  const float* key(int64_t slot) const { return keys_.data() + slot * inner_; }
  const float* value(int64_t slot) const { return values_.data() + slot * inner_; }

 private:
  KvShape shape_;
  int64_t inner_;
  int64_t n_pages_;
  std::vector<float> keys_;
  std::vector<float> values_;
  std::shared_ptr<MemoryCount> count_;
  const void* owner_;
};

// The slots of the keys that a row sees.
std::vector<int64_t> slots_of(const PageTable& pages, size_t row) {
  std::vector<int64_t> slots(static_cast<size_t>(pages.n_keys[row]));
  const auto begin = static_cast<size_t>(pages.begin[static_cast<size_t>(pages.table[row])]);
  for (size_t j = 0; j < slots.size(); ++j) {
    const int64_t page = pages.pages[begin + j / kPageTokens];
    slots[j] = page * kPageTokens + static_cast<int64_t>(j % kPageTokens);
  }
  return slots;
}

}  // namespace

std::unique_ptr<KvCache> ReferenceDevice::make_kv_cache(const KvShape& shape, int64_t n_pages) {
  try {
    return std::make_unique<ReferenceKvCache>(shape, n_pages, count_, this);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kMemory, "{}: a cache of {} pages needs {} bytes, which cannot be had", name_,
         n_pages, n_pages * shape.bytes_per_page());
  }
}

void ReferenceDevice::kv_copy(std::span<const PageCopy> copies, KvCache& cache) {
  auto& kept = dynamic_cast<ReferenceKvCache&>(cache);
  for (const PageCopy& copy : copies) {
    for (int64_t i = 0; i < copy.n_tokens; ++i) {
      const int64_t from = int64_t{copy.from} * kPageTokens + i;
      const int64_t to = int64_t{copy.to} * kPageTokens + i;
      std::copy_n(kept.key(from), kept.inner(), kept.key(to));
      std::copy_n(kept.value(from), kept.inner(), kept.value(to));
    }
  }
}

void ReferenceDevice::kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                               KvCache& cache) {
  auto& kept = dynamic_cast<ReferenceKvCache&>(cache);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0) continue;
    std::copy_n(k.row<float>(static_cast<int64_t>(i)), kept.inner(), kept.key(slots[i]));
    std::copy_n(v.row<float>(static_cast<int64_t>(i)), kept.inner(), kept.value(slots[i]));
  }
}

void ReferenceDevice::cached_attention(const Tensor& q, const KvCache& cache,
                                       const PageTable& pages, const Tensor& position_bias,
                                       const AttentionArgs& args, const Tensor& y) {
  const auto& kept = dynamic_cast<const ReferenceKvCache&>(cache);
  const int64_t zero = (position_bias.cols() - 1) / 2;  // where the table keeps distance 0
  for (int64_t i = 0; i < q.rows(); ++i) {
    const std::vector<int64_t> slots = slots_of(pages, static_cast<size_t>(i));
    const auto n_keys = static_cast<int64_t>(slots.size());
    for (int64_t head = 0; head < args.n_heads; ++head) {
      const int64_t column = head * args.d_kv;
      std::vector<double> scores;
      for (int64_t j = 0; j < n_keys; ++j) {
        const float* key = kept.key(slots[static_cast<size_t>(j)]) + column;
        double score = dot(q.row<float>(i) + column, key, args.d_kv) * args.scale;
        if (position_bias) score += position_bias.row<float>(head)[zero + j - (n_keys - 1)];
        scores.push_back(score);
      }
      const auto value = [&](size_t j) { return kept.value(slots[j]) + column; };
      weigh(scores, value, args.d_kv, y.row<float>(i) + column);
    }
  }
}

void ReferenceDevice::log_softmax(const Tensor& x) {
  for (int64_t i = 0; i < x.rows(); ++i) {
    const std::span<float> row(x.row<float>(i), static_cast<size_t>(x.cols()));
    const double highest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float value : row) sum += std::exp(value - highest);
    for (float& value : row) value = static_cast<float>(value - highest - std::log(sum));
  }
}

void ReferenceDevice::edit(std::span<const LogitEdit> edits, const Tensor& x) {
  for (const LogitEdit& change : edits) {
    float* row = x.row<float>(change.row);
    if (change.kind == LogitEdit::Kind::kFillRow) {
      std::fill_n(row, x.cols(), change.value);
    } else if (change.kind == LogitEdit::Kind::kSet) {
      row[change.token] = change.value;
    } else {
      const float before = row[change.token];
      row[change.token] = before < 0 ? before * change.value : before / change.value;
    }
  }
}

void ReferenceDevice::top_k(const Tensor& x, int64_t k, std::span<int32_t> ids,
                            std::span<float> values) {
  std::vector<int32_t> order(static_cast<size_t>(x.cols()));
  for (int64_t i = 0; i < x.rows(); ++i) {
    const float* row = x.row<float>(i);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::isnan(row[b]) ? !std::isnan(row[a]) : row[a] > row[b];
    });
    for (int64_t j = 0; j < k; ++j) {
      const int32_t id = order[static_cast<size_t>(j)];
      ids[static_cast<size_t>(i * k + j)] = id;
      values[static_cast<size_t>(i * k + j)] = row[id];
    }
  }
}

void ReferenceDevice::pick(const Tensor& x, std::span<const int32_t> rows,
                           std::span<const int32_t> columns, std::span<float> values) {
  for (size_t i = 0; i < rows.size(); ++i) values[i] = x.row<float>(rows[i])[columns[i]];
}

}  // namespace quintet
