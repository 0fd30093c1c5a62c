// The checks and the tiling of ops; what the ops compute is tested on every device by
// backends/contract_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "backends/cpu/cpu_device.h"
#include "backends/reference/reference_device.h"
#include "ops/attention.h"
#include "ops/feed_forward.h"
#include "ops/rows.h"
#include "ops/weights.h"
#include "quintet/error.h"

namespace quintet::ops {
namespace {

using testing::HasSubstr;

constexpr int64_t kModel = 8;
constexpr int64_t kHeads = 2;
constexpr int64_t kWide = 12;

std::vector<float> numbers(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.5F);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

template <typename AnyDevice>
struct LayerOn {
  template <typename... Args>
  explicit LayerOn(Args&&... args) : device(std::forward<Args>(args)...) {
    const std::vector<float> ones(kModel, 1);
    device.upload(ones.data(), norm);
  }

  std::unique_ptr<Weight> weight(int64_t rows, int64_t cols, uint32_t seed) {
    const auto values = numbers(rows * cols, seed);
    const HostView view{.name = "w",
                        .data = reinterpret_cast<const std::byte*>(values.data()),
                        .dtype = DType::kFloat32,
                        .shape = {rows, cols}};
    return pack(device, {&view, 1}, {});
  }

  // Both halves of a block over one sequence of n tokens.
  Tensor forward(int64_t n, int64_t first_position = 0) {
    MicroBatch batch;
    for (int32_t i = 0; i < n; ++i)
      batch.positions.push_back(i + static_cast<int32_t>(first_position));
    batch.tokens.assign(static_cast<size_t>(n), 0);
    batch.cu_seqlens = {0, static_cast<int32_t>(n)};
    batch.ordinals = {0};
    batch.max_len = static_cast<int32_t>(n + first_position);
    Tensor hidden = device.allocate(n, kModel, DType::kFloat32);
    device.upload(numbers(n * kModel, 1).data(), hidden);
    self_attention_add(workspace, batch, hidden, {.norm = norm, .q = *q, .kv = *kv, .o = *o}, 1e-6F,
                       {}, {.n_heads = kHeads, .d_kv = 4});
    feed_forward_add(workspace, hidden, {.norm = norm, .wi = *wi, .wo = *wo}, 1e-6F,
                     Activation::kRelu);
    return hidden;
  }

  AnyDevice device;
  Workspace workspace{device};
  Tensor norm = device.allocate(1, kModel, DType::kFloat32);
  std::unique_ptr<Weight> q = weight(8, kModel, 2);
  std::unique_ptr<Weight> kv = weight(16, kModel, 3);
  std::unique_ptr<Weight> o = weight(kModel, 8, 4);
  std::unique_ptr<Weight> wi = weight(kWide, kModel, 5);
  std::unique_ptr<Weight> wo = weight(kModel, kWide, 6);
};
using Layer = LayerOn<ReferenceDevice>;

// By the plain definition, all rows at once, in the same order of operations.
TEST(Ops, TilesDoNotChangeOneBit) {
  Layer layer;
  const int64_t n = kTileRows + 37;
  const Tensor tiled = layer.forward(n);

  ReferenceDevice& device = layer.device;
  const auto linear = [&](const Tensor& x, const Weight& w, Epilogue epilogue, Tensor y) {
    device.linear(x, w, epilogue, y);
    return y;
  };
  Tensor hidden = device.allocate(n, kModel, DType::kFloat32);
  device.upload(numbers(n * kModel, 1).data(), hidden);
  MicroBatch batch;
  batch.tokens.resize(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) batch.positions.push_back(i);
  batch.cu_seqlens = {0, static_cast<int32_t>(n)};
  batch.max_len = static_cast<int32_t>(n);
  const Tensor x = device.allocate(n, kModel, DType::kFloat32);
  device.rms_norm(hidden, layer.norm, 1e-6F, x);
  const Tensor q = linear(x, *layer.q, {}, device.allocate(n, 8, DType::kFloat32));
  const Tensor kv = linear(x, *layer.kv, {}, device.allocate(n, 16, DType::kFloat32));
  const Tensor y = device.allocate(n, 8, DType::kFloat32);
  device.attention(q, kv.columns(0, 8), kv.columns(8, 8), {}, batch, 0,
                   {.n_heads = kHeads, .d_kv = 4}, y);
  linear(y, *layer.o, {.accumulate = true}, hidden);
  device.rms_norm(hidden, layer.norm, 1e-6F, x);
  const Tensor wide = linear(x, *layer.wi, {.activation = Activation::kRelu},
                             device.allocate(n, kWide, DType::kFloat32));
  linear(wide, *layer.wo, {.accumulate = true}, hidden);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < kModel; ++j) {
      ASSERT_EQ(tiled.row<float>(i)[j], hidden.row<float>(i)[j]) << "row " << i;
    }
  }
}

TEST(Ops, WorkBuffersAreKeptAndAreWhatIsPlanned) {
  CpuDeviceOptions one_thread;
  one_thread.name = "cpu:0";
  one_thread.threads = 1;
  LayerOn<CpuDevice> layer(one_thread);
  const size_t weights = layer.device.memory().used;
  const ActivationBytes planned = activation_bytes(kModel, 8, kWide);
  const int64_t n = kTileRows + 37;
  layer.forward(n);
  EXPECT_EQ(layer.device.memory().peak, weights + static_cast<size_t>(planned.of(n)));
  layer.forward(5);
  layer.forward(n);
  EXPECT_EQ(layer.device.memory().peak, weights + static_cast<size_t>(planned.of(n)));
}

template <typename F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Ops, WrongArgumentsAreRefused) {
  Layer layer;
  ReferenceDevice& device = layer.device;
  const Tensor x = device.allocate(2, 5, DType::kFloat32);
  EXPECT_EQ(message_of([&] { rms_norm(device, x, layer.norm, 1e-6F, x); }),
            "rms_norm: weight is [1, 8] float32, expected [1, 5] float32");
  const std::vector<int32_t> begin = {0};
  const std::vector<int32_t> end = {3};
  EXPECT_THAT(message_of([&] { pool(device, x, begin, end, Pooling::kMean, false); }),
              HasSubstr("range 0 is rows 0 .. 3 of 2"));
  const Tensor hidden = device.allocate(2, kModel, DType::kFloat32);
  EXPECT_THAT(message_of([&] {
                feed_forward_add(layer.workspace, hidden,
                                 {.norm = layer.norm, .wi = *layer.wi, .wo = *layer.o}, 1e-6F,
                                 Activation::kRelu);
              }),
              HasSubstr("feed_forward: wo takes 8 columns to 8, expected 12 to 8"));
  EXPECT_THAT(message_of([&] { pack(device, {}, {}); }), HasSubstr("0 parts"));
}

TEST(Ops, PartsOfAWeightThatDoNotFitAreRefused) {
  ReferenceDevice device;
  const std::vector<float> zeros(24);
  const auto view = [&](int64_t rows, int64_t cols, DType dtype = DType::kFloat32) {
    return HostView{.name = "w",
                    .data = reinterpret_cast<const std::byte*>(zeros.data()),
                    .dtype = dtype,
                    .shape = {rows, cols}};
  };
  const auto refusal = [&](const std::vector<HostView>& parts, const PackOptions& options) {
    return message_of([&] { pack(device, parts, options); });
  };
  const PackOptions transposed{.transposed = true};
  EXPECT_THAT(refusal({view(2, 3), view(2, 4)}, {}), HasSubstr("[2, 4], 'w' beside it [2, 3]"));
  EXPECT_THAT(refusal({view(2, 3), view(4, 3)}, transposed), HasSubstr("[4, 3]"));
  EXPECT_THAT(refusal({view(2, 3), view(2, 4)}, {.gated = true, .transposed = true}),
              HasSubstr("[2, 4]"));
  EXPECT_THAT(refusal({view(2, 3), view(2, 3, DType::kBFloat16)}, {}), HasSubstr("bfloat16"));
  EXPECT_THAT(refusal({view(2, 3)}, {.first_column = 1}), HasSubstr("not transposed"));
  for (const auto& [first, count] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 1}, {0, -1}, {4, 0}, {1, 3}, {3, INT64_MAX}}) {
    EXPECT_THAT(
        refusal({view(2, 3)}, {.transposed = true, .first_column = first, .n_columns = count}),
        HasSubstr("are asked for"));
  }
  EXPECT_EQ(pack(device, std::vector<HostView>{view(2, 3), view(2, 4)}, transposed)->d_out(), 7);
}

TEST(Ops, WeightsOfAnotherDeviceAreRefused) {
  Layer layer;
  Layer other;
  const Tensor hidden = layer.device.allocate(2, kModel, DType::kFloat32);
  EXPECT_THAT(message_of([&] {
                feed_forward_add(layer.workspace, hidden,
                                 {.norm = layer.norm, .wi = *other.wi, .wo = *layer.wo}, 1e-6F,
                                 Activation::kRelu);
              }),
              HasSubstr("wi is on another device"));
}

TEST(Ops, BatchesThatContradictThemselvesAreRefused) {
  Layer layer;
  const Tensor hidden = layer.device.allocate(2, kModel, DType::kFloat32);
  MicroBatch good;
  good.tokens = {1, 2};
  good.positions = {0, 1};
  good.cu_seqlens = {0, 2};
  good.max_len = 2;
  const auto run = [&](const MicroBatch& batch) {
    return message_of([&] {
      self_attention_add(layer.workspace, batch, hidden,
                         {.norm = layer.norm, .q = *layer.q, .kv = *layer.kv, .o = *layer.o}, 1e-6F,
                         {}, {.n_heads = kHeads, .d_kv = 4});
    });
  };
  EXPECT_EQ(run(good), "");
  MicroBatch bad = good;
  bad.max_len = 1;
  EXPECT_THAT(run(bad), HasSubstr("position 1 of token 1"));
  bad = good;
  bad.positions = {1, 1};
  EXPECT_THAT(run(bad), HasSubstr("position 1 of token 1"));
  bad = good;
  bad.cu_seqlens = {0, 3, 2};
  EXPECT_THAT(run(bad), HasSubstr("ends before it starts"));
  bad = good;
  bad.cu_seqlens = {0, 1};
  EXPECT_THAT(run(bad), HasSubstr("the last of them 1"));
}

TEST(Ops, TablesAndVectorsConvert) {
  ReferenceDevice device;
  std::vector<uint16_t> half = {float16_from_float(1.5F), float16_from_float(-2)};
  HostView view{.name = "t",
                .data = reinterpret_cast<const std::byte*>(half.data()),
                .dtype = DType::kFloat16,
                .shape = {2, 1}};
  const Tensor table = upload_table(device, view, DType::kBFloat16);
  EXPECT_EQ(*table.row<uint16_t>(1), bfloat16_from_float(-2));
  view.shape = {2};
  const Tensor vector = upload_vector(device, view);
  EXPECT_EQ(vector.row<float>(0)[0], 1.5F);
  EXPECT_EQ(vector.row<float>(0)[1], -2.0F);
  view.shape = {1, 1, 2};
  EXPECT_THAT(message_of([&] { upload_vector(device, view); }), HasSubstr("'t' has 3 dimensions"));
}

}  // namespace
}  // namespace quintet::ops
