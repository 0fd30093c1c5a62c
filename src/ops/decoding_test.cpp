// The checks of the ops that decoders call, and that what passes them reaches the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "backends/reference/reference_device.h"
#include "ops/cached.h"
#include "ops/logits.h"
#include "ops/rows.h"
#include "ops/weights.h"
#include "quintet/error.h"

namespace quintet::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Decoding : public testing::Test {
 protected:
  Tensor put(int64_t rows, int64_t cols, std::vector<float> values) {
    Tensor tensor = device_.allocate(rows, cols, DType::kFloat32);
    device_.upload(values.data(), tensor);
    return tensor;
  }
  std::vector<float> get(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
    device_.download(tensor, values.data());
    return values;
  }

  ReferenceDevice device_;
};

TEST_F(Decoding, RowsAreLookedUpAddedAndGathered) {
  const Tensor table = put(3, 2, {1, 2, 3, 4, 5, 6});
  const Tensor y = gather(device_, table, std::vector<int32_t>{2, 0, 2});
  EXPECT_THAT(get(y), ElementsAre(5, 6, 1, 2, 5, 6));
  embedding_add(device_, std::vector<int32_t>{0, 1, 2}, table, y);
  EXPECT_THAT(get(y), ElementsAre(6, 8, 4, 6, 10, 12));
  EXPECT_THAT(message_of([&] {
                gather(device_, table, std::vector<int32_t>{0, 3});
              }),
              HasSubstr("gather: row 3 of number 1 is outside 0 .. 2"));
  EXPECT_THAT(message_of([&] { embedding_add(device_, std::vector<int32_t>{3}, table, y); }),
              HasSubstr("y is [3, 2]"));
  EXPECT_THAT(message_of([&] {
                embedding_add(device_, std::vector<int32_t>{0, -1, 0}, table, y);
              }),
              HasSubstr("token id -1 of token 1 is outside the vocabulary, 0 .. 2"));
}

TEST_F(Decoding, RowsOfAPackedMatrixAreItsOwn) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const HostView view{.name = "w",
                      .data = reinterpret_cast<const std::byte*>(values.data()),
                      .dtype = DType::kFloat32,
                      .shape = {3, 2}};
  const auto weight = pack(device_, {&view, 1}, {});
  EXPECT_THAT(get(weight_rows(device_, std::vector<int32_t>{2, 1}, *weight)),
              ElementsAre(5, 6, 3, 4));
  EXPECT_THAT(message_of([&] { weight_rows(device_, std::vector<int32_t>{3}, *weight); }),
              HasSubstr("token id 3"));
  const std::vector<HostView> halves = {view, view};
  const auto gated = pack(device_, halves, {.gated = true});
  EXPECT_THAT(message_of([&] { weight_rows(device_, std::vector<int32_t>{0}, *gated); }),
              HasSubstr("has a gate"));
}

TEST_F(Decoding, LayerNormIsCentredScaledAndShifted) {
  const Tensor x = put(2, 2, {1, 3, -5, 5});
  const Tensor weight = put(1, 2, {2, 1});
  const Tensor bias = put(1, 2, {0.5F, 0});
  layer_norm(device_, x, weight, bias, 0, x);
  EXPECT_THAT(get(x), ElementsAre(-1.5F, 1, -1.5F, 1));
  EXPECT_THAT(message_of([&] {
                layer_norm(device_, x, weight, put(1, 3, {0, 0, 0}), 0, x);
              }),
              HasSubstr("layer_norm: bias is [1, 3] float32, expected [1, 2]"));
}

TEST_F(Decoding, LogitsAreEditedAndChosen) {
  using Kind = LogitEdit::Kind;
  const Tensor x = put(2, 3, {2, -4, 2, 7, 8, 9});
  const std::vector<LogitEdit> edits = {
      {.kind = Kind::kPenalise, .row = 0, .token = 0, .value = 2},
      {.kind = Kind::kPenalise, .row = 0, .token = 1, .value = 2},
      {.kind = Kind::kFillRow, .row = 1, .token = -1, .value = -kInfinity},
      {.kind = Kind::kSet, .row = 1, .token = 2, .value = 3}};
  edit(device_, edits, x);
  EXPECT_THAT(get(x), ElementsAre(1, -8, 2, -kInfinity, -kInfinity, 3));
  const Best best = top_k(device_, x, 2);
  EXPECT_THAT(best.ids, ElementsAre(2, 0, 2, 0));
  EXPECT_THAT(best.values, ElementsAre(2, 1, 3, -kInfinity));
  EXPECT_THAT(pick(device_, x, std::vector<int32_t>{1, 0}, std::vector<int32_t>{2, 1}),
              ElementsAre(3, -8));
  log_softmax(device_, x);
  EXPECT_THAT(get(x.rows(1, 1)), ElementsAre(-kInfinity, -kInfinity, 0));
}

TEST_F(Decoding, WrongEditsAndChoicesAreRefused) {
  const Tensor x = put(1, 3, {1, 2, 3});
  const auto refused = [&](LogitEdit change) {
    return message_of([&] { edit(device_, {&change, 1}, x); });
  };
  EXPECT_THAT(refused({.row = 1}), HasSubstr("row 1, token 0 is outside the logits, [1, 3]"));
  EXPECT_THAT(refused({.token = 3}), HasSubstr("token 3"));
  EXPECT_THAT(message_of([&] { top_k(device_, x, 4); }), HasSubstr("4 of 3 columns"));
  EXPECT_THAT(message_of([&] { top_k(device_, x, 0); }), HasSubstr("expected 1 .. 3"));
  EXPECT_THAT(
      message_of([&] { pick(device_, x, std::vector<int32_t>{0}, std::vector<int32_t>{3}); }),
      HasSubstr("pick: column 3"));
  EXPECT_THAT(message_of([&] { pick(device_, x, std::vector<int32_t>{0}, {}); }),
              HasSubstr("1 rows and 0 columns"));
}

TEST_F(Decoding, KeptKeysAreAttendedTo) {
  const auto cache = make_kv_cache(device_, {.n_heads = 1, .d_kv = 2}, 3);
  const Tensor k = put(2, 2, {1, 0, 0, 1});
  const Tensor v = put(2, 2, {10, 20, 30, 40});
  kv_write(device_, k, v, std::vector<int32_t>{2 * kPageTokens, -1}, *cache);
  const std::vector<PageCopy> copies = {{.from = 2, .to = 0, .n_tokens = 1}};
  kv_copy(device_, copies, *cache);
  kv_write(device_, k, v, std::vector<int32_t>{-1, 1}, *cache);
  const PageTable pages{.pages = {0, 2}, .begin = {0, 1, 2}, .table = {1, 0}, .n_keys = {1, 2}};
  const Tensor q = put(2, 2, {1, 1, 1, 1});
  cached_attention(device_, q, *cache, pages, {}, {.n_heads = 1, .d_kv = 2}, q);
  EXPECT_THAT(get(q), ElementsAre(10, 20, 20, 30));
}

TEST_F(Decoding, WrongPagesAndSlotsAreRefused) {
  const AttentionArgs args{.n_heads = 1, .d_kv = 2};
  const auto cache = make_kv_cache(device_, {.n_heads = 1, .d_kv = 2}, 2);
  const Tensor q = put(1, 2, {1, 1});
  const auto refused = [&](const PageTable& pages, Tensor bias = {}) {
    return message_of([&] { cached_attention(device_, q, *cache, pages, bias, args, q); });
  };
  EXPECT_THAT(refused({.pages = {2}, .begin = {0, 1}, .table = {0}, .n_keys = {1}}),
              HasSubstr("page 2 of number 0 is outside 0 .. 1"));
  EXPECT_THAT(refused({.pages = {0}, .begin = {0, 1}, .table = {1}, .n_keys = {1}}),
              HasSubstr("table 1 of number 0"));
  EXPECT_THAT(refused({.pages = {0}, .begin = {0, 1}, .table = {0}, .n_keys = {25}}),
              HasSubstr("row 0 has 25 keys, its table has room for 24"));
  EXPECT_THAT(refused({.pages = {0}, .begin = {0, 1}, .table = {0}, .n_keys = {0}}),
              HasSubstr("row 0 has 0 keys"));
  EXPECT_THAT(refused({.pages = {0}, .begin = {0, 2}, .table = {0}, .n_keys = {1}}),
              HasSubstr("do not share out their 1 pages"));
  EXPECT_THAT(refused({.pages = {0}, .begin = {0, 1}, .table = {}, .n_keys = {1}}),
              HasSubstr("1 rows have 0 tables and 1 numbers of keys"));
  EXPECT_THAT(
      refused({.pages = {0}, .begin = {0, 1}, .table = {0}, .n_keys = {3}}, put(1, 3, {0, 0, 0})),
      HasSubstr("position_bias has 3 columns, expected an odd number from 5 on"));
  EXPECT_THAT(message_of([&] { kv_write(device_, q, q, std::vector<int32_t>{48}, *cache); }),
              HasSubstr("slot 48 of row 0 is outside -1 .. 47"));
  const PageCopy copy{.from = 0, .to = 2};
  EXPECT_THAT(message_of([&] {
                kv_copy(device_, {&copy, 1}, *cache);
              }),
              HasSubstr("page 0 to page 2; the cache has 2 pages"));
  ReferenceDevice other;
  EXPECT_THAT(message_of([&] { kv_write(other, q, q, std::vector<int32_t>{0}, *cache); }),
              HasSubstr("the cache is on another device"));
  EXPECT_THAT(message_of([&] { make_kv_cache(device_, {.n_heads = 0, .d_kv = 2}, 2); }),
              HasSubstr("0 heads of 2"));
  EXPECT_THAT(message_of([&] { make_kv_cache(device_, {.n_heads = 1, .d_kv = 2}, 1 << 30); }),
              HasSubstr("1073741824 pages"));
}

}  // namespace
}  // namespace quintet::ops
