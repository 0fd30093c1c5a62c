// Attention on the CPU against double precision, and its bits: whatever else is in the batch, the
// cut into row tiles, the number of threads and the instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/cpu_device.h"

namespace quintet {
namespace {

constexpr int64_t kHeads = 3;

std::unique_ptr<CpuDevice> device_of(Isa isa, int threads) {
  return std::make_unique<CpuDevice>(CpuDeviceOptions{.name = "cpu:0",
                                                      .cores = {},
                                                      .threads = threads,
                                                      .isa = isa,
                                                      .lending = std::make_shared<CoreLending>()});
}

// Sequences with all they need, made from their own seeds: the same alone and among others.
struct Case {
  MicroBatch batch;
  int64_t d_kv = 0;
  std::vector<float> q, k, v;  // [n_tokens, kHeads * d_kv]

  Case(const std::vector<int>& lengths, int64_t d, bool holes, uint32_t first_seed = 1) : d_kv(d) {
    batch.cu_seqlens = {0};
    for (size_t s = 0; s < lengths.size(); ++s) {
      std::mt19937 random(first_seed + static_cast<uint32_t>(s));
      std::normal_distribution<float> normal(0.0F, 1.0F);
      int32_t position = holes ? 3 : 0;
      for (int i = 0; i < lengths[s]; ++i) {
        batch.positions.push_back(position);
        position += holes && random() % 5 == 0 ? 4 : 1;
        for (int64_t j = 0; j < kHeads * d; ++j) {
          q.push_back(normal(random));
          k.push_back(normal(random));
          v.push_back(normal(random));
        }
      }
      batch.tokens.resize(batch.positions.size());
      batch.cu_seqlens.push_back(static_cast<int32_t>(batch.positions.size()));
      batch.ordinals.push_back(s);
      batch.max_len = std::max(batch.max_len, position);
    }
  }
  size_t width() const { return static_cast<size_t>(kHeads * d_kv); }
};

// One table for all cases: a value per distance below 4096.
constexpr int64_t kFarthest = 4096;
float bias_at(int64_t head, int64_t distance) {
  return std::sin(static_cast<float>(head * 7 + distance) * 0.37F) * 2.0F;
}

Tensor bias_table(Device& device) {
  std::vector<float> values(static_cast<size_t>(kHeads * (2 * kFarthest - 1)));
  for (int64_t h = 0; h < kHeads; ++h) {
    for (int64_t i = 0; i < 2 * kFarthest - 1; ++i) {
      values[static_cast<size_t>(h * (2 * kFarthest - 1) + i)] = bias_at(h, i - (kFarthest - 1));
    }
  }
  const Tensor table = device.allocate(kHeads, 2 * kFarthest - 1);
  device.upload(values.data(), table);
  return table;
}

std::vector<float> run(Device& device, const Case& c, const AttentionArgs& args, bool bias,
                       int64_t tile_rows) {
  const int64_t n = c.batch.n_tokens();
  const auto put = [&](const std::vector<float>& values) {
    Tensor t = device.allocate(n, kHeads * c.d_kv);
    device.upload(values.data(), t);
    return t;
  };
  const Tensor q = put(c.q);
  const Tensor k = put(c.k);
  const Tensor v = put(c.v);
  const Tensor y = device.allocate(n, kHeads * c.d_kv);
  const Tensor table = bias ? bias_table(device) : Tensor();
  for (int64_t begin = 0; begin < n; begin += tile_rows) {
    const int64_t rows = std::min(tile_rows, n - begin);
    device.attention(q.rows(begin, rows), k, v, table, c.batch, begin, args, y.rows(begin, rows));
  }
  std::vector<float> values(c.q.size());
  device.download(y, values.data());
  return values;
}

std::vector<double> expected(const Case& c, const AttentionArgs& args, bool bias) {
  std::vector<double> y(c.q.size());
  for (int64_t s = 0; s < c.batch.n_seqs(); ++s) {
    const auto begin = static_cast<size_t>(c.batch.cu_seqlens[static_cast<size_t>(s)]);
    const auto end = static_cast<size_t>(c.batch.cu_seqlens[static_cast<size_t>(s) + 1]);
    for (size_t i = begin; i < end; ++i) {
      for (int64_t h = 0; h < kHeads; ++h) {
        const auto at = static_cast<size_t>(h * c.d_kv);
        std::vector<double> p(end - begin);
        double sum = 0;
        for (size_t j = begin; j < end; ++j) {
          const int32_t distance = c.batch.positions[j] - c.batch.positions[i];
          if (args.causal && distance > 0) continue;
          double score = 0;
          for (size_t d = 0; d < static_cast<size_t>(c.d_kv); ++d) {
            score += double{c.q[i * c.width() + at + d]} * c.k[j * c.width() + at + d];
          }
          p[j - begin] = std::exp(score * args.scale + (bias ? bias_at(h, distance) : 0.0F));
          sum += p[j - begin];
        }
        for (size_t d = 0; d < static_cast<size_t>(c.d_kv); ++d) {
          double context = 0;
          for (size_t j = begin; j < end; ++j)
            context += p[j - begin] * c.v[j * c.width() + at + d];
          y[i * c.width() + at + d] = context / sum;
        }
      }
    }
  }
  return y;
}

void check(const Case& c, const AttentionArgs& args, bool bias) {
  const auto want = expected(c, args, bias);
  std::vector<float> first;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (!has_isa(isa)) continue;
    for (const int64_t tile : {int64_t{1} << 30, int64_t{37}}) {
      const auto got = run(*device_of(isa, tile == 37 ? 3 : 1), c, args, bias, tile);
      if (first.empty()) first = got;
      ASSERT_EQ(got, first);
    }
  }
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(first[i] - want[i], 2);
    norm += want[i] * want[i];
  }
  EXPECT_LE(std::sqrt(difference / norm), 4e-6);
}

TEST(CpuAttention, EqualsDoublePrecision) {
  for (const bool holes : {false, true}) {
    for (const bool causal : {false, true}) {
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(testing::Message() << holes << causal << bias);
        const AttentionArgs args{.n_heads = kHeads, .d_kv = 16, .scale = 0.25F, .causal = causal};
        check(Case({1, 2, 7, 16, 17, 33, 95, 96, 97}, 16, holes), args, bias);
        check(Case({191, 192, 193, 300, 1}, 16, holes), args, bias);
      }
    }
  }
}

TEST(CpuAttention, HeadsOfAnyWidth) {
  for (const int64_t d_kv : {1, 3, 8, 20, 64, 128}) {
    SCOPED_TRACE(d_kv);
    check(Case({5, 40, 200}, d_kv, false),
          {.n_heads = kHeads, .d_kv = d_kv, .scale = 1.0F / std::sqrt(static_cast<float>(d_kv))},
          true);
  }
}

TEST(CpuAttention, LongSequence) {
  check(Case({2500}, 8, false), {.n_heads = kHeads, .d_kv = 8, .scale = 1.0F}, true);
  check(Case({2500}, 8, true), {.n_heads = kHeads, .d_kv = 8, .scale = 1.0F, .causal = true}, true);
}

TEST(CpuAttention, LargeScoresDoNotOverflow) {
  Case c({50, 250}, 16, false);
  for (float& value : c.q) value *= 12.0F;
  check(c, {.n_heads = kHeads, .d_kv = 16, .scale = 1.0F}, true);
}

// A sequence's rows are the same alone and behind others.
TEST(CpuAttention, BatchMatesChangeNoBit) {
  for (const bool causal : {false, true}) {
    const AttentionArgs args{.n_heads = kHeads, .d_kv = 24, .scale = 0.2F, .causal = causal};
    const auto device = device_of(best_isa(), 2);
    const Case among({13, 230, 40}, 24, true, 1);
    const auto all = run(*device, among, args, true, 1 << 20);
    const Case alone({230}, 24, true, 2);
    const auto one = run(*device, alone, args, true, 1 << 20);
    const auto begin = all.begin() + static_cast<ptrdiff_t>(13 * among.width());
    EXPECT_EQ(std::vector<float>(begin, begin + static_cast<ptrdiff_t>(one.size())), one);
  }
}

}  // namespace
}  // namespace quintet
