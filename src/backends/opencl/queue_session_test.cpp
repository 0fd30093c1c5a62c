// Memory, copies and marks of one device.
#include "backends/opencl/queue_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "backends/opencl/ledger.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_testing.h"
#include "core/error.h"

namespace quintet::opencl {
namespace {

using testing::HasSubstr;

constexpr const char* kText = R"(
__kernel void add_one(__global float* x, long offset, long stride, int cols) {
  const long row = get_global_id(0);
  for (int i = 0; i < cols; ++i) x[offset + row * stride + i] += 1;
}
// y = x, a good while later
__kernel void copy_slowly(__global float* x, long x_offset, long x_stride,
                          __global float* y, long y_offset, long y_stride, int cols, int turns) {
  uint state = (uint)x_offset + 1;
  for (int i = 0; i < turns; ++i) state = state * 1664525u + (state >> 7);
  for (int i = 0; i < cols; ++i) y[y_offset + i] = x[x_offset + i] + (state == 12345u ? 1e-30f : 0);
})";
constexpr cl_int kTurns = 40'000'000;  // about a twentieth of a second

std::vector<float> counted(size_t n, float first = 1) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Once with plain copies, once through pinned memory.
class QueueSessionTest : public OpenclTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    OpenclTest::SetUp();
    if (devices.empty()) return;
    auto made = std::make_unique<QueueSession>(device(), SessionOptions{.pinned = GetParam()});
    session = made.get();
    opened = std::make_unique<OpenclDevice>(std::move(made));
    add_one = test_kernel(*session, kText, "add_one");
    copy_slowly = test_kernel(*session, kText, "copy_slowly");
  }

  Tensor uploaded(const std::vector<float>& values, int64_t rows) {
    const auto cols = static_cast<int64_t>(values.size()) / rows;
    Tensor tensor = opened->allocate(rows, cols, DType::kFloat32);
    opened->upload(values.data(), tensor);
    return tensor;
  }
  std::vector<float> downloaded(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
    opened->download(tensor, values.data());
    return values;
  }
  void enqueue_add_one(const Tensor& x) {
    session->launch(add_one, {static_cast<size_t>(x.rows()), 1, 1}, {0, 0, 0}, MatrixArg(x),
                    static_cast<cl_int>(x.cols()));
  }
  void enqueue_slow_copy(const Tensor& x, const Tensor& y) {
    session->launch(copy_slowly, {1, 1, 1}, {1, 1, 1}, MatrixArg(x), MatrixArg(y),
                    static_cast<cl_int>(x.cols()), kTurns);
  }

  QueueSession* session = nullptr;
  std::unique_ptr<OpenclDevice> opened;
  cl::Kernel add_one;
  cl::Kernel copy_slowly;
};

INSTANTIATE_TEST_SUITE_P(Copies, QueueSessionTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Pinned" : "Plain"; });

TEST_P(QueueSessionTest, MemoryIsCountedAndReturnsToZero) {
  EXPECT_EQ(opened->memory().used, 0U);
  {
    const Tensor x = opened->allocate(100, 1000, DType::kFloat32);
    EXPECT_GE(opened->memory().used, 400000U);
    EXPECT_LT(opened->memory().used, 440000U);
    EXPECT_EQ(Ledger::instance().used(opened->name()), opened->memory().used);
  }
  EXPECT_EQ(opened->memory().used, 0U);
  EXPECT_GE(opened->memory().peak, 400000U);
  EXPECT_GE(Ledger::instance().taken(device().info.memory_pool), 400000U);
  opened->empty_cache();
  EXPECT_EQ(Ledger::instance().taken(device().info.memory_pool), 0U);
}

TEST_P(QueueSessionTest, ARunAllocatesOnlyInItsFirstMoments) {
  const auto round = [&] {
    const Tensor x = opened->allocate(100, 1000, DType::kFloat32);
    const Tensor y = opened->allocate(50, 1000, DType::kFloat32);
    const Tensor z = opened->allocate(1, 7, DType::kInt32);
  };
  round();
  const size_t taken = Ledger::instance().taken(device().info.memory_pool);
  const size_t peak = opened->memory().peak;
  for (int i = 0; i < 10; ++i) round();
  // Other sizes take the place of what is kept, beyond what was used at once nothing is.
  for (int64_t i = 1; i < 40; ++i) opened->allocate(3 * i, 1000, DType::kFloat32);
  EXPECT_EQ(opened->memory().peak, peak);
  EXPECT_LE(Ledger::instance().taken(device().info.memory_pool), taken);
}

TEST_P(QueueSessionTest, TooLargeABufferSaysWhatThereIs) {
  try {
    opened->allocate(int64_t{1} << 40, 1 << 10, DType::kFloat32);
    FAIL() << "4 PiB were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_THAT(error.what(), HasSubstr(opened->name()));
    EXPECT_THAT(error.what(), HasSubstr("a tensor [1099511627776, 1024] needs 4"));
    EXPECT_THAT(error.what(), HasSubstr("larger than any buffer"));
  }
  EXPECT_EQ(opened->memory().used, 0U);
}

TEST_P(QueueSessionTest, MoreThanIsFreeIsRefusedAtOnce) {
  const size_t piece = session->limits().largest_buffer / 4096 * 4096;
  std::vector<std::shared_ptr<DeviceBuffer>> held;
  try {
    // Nothing is written to them, so main memory is not really used up.
    for (int i = 0; i < 1000; ++i) held.push_back(session->allocate(piece, "a large weight"));
    FAIL() << "1000 times the largest buffer";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_THAT(error.what(), HasSubstr("a large weight needs"));
  }
  held.clear();
  EXPECT_EQ(opened->memory().used, 0U);
  EXPECT_NE(session->allocate(1000, "a small weight"), nullptr);
}

TEST_P(QueueSessionTest, ViewsAreCopiedRowByRow) {
  const Tensor whole = uploaded(std::vector<float>(5 * 70, 0.0F), 5);
  const Tensor part = whole.rows(1, 3).columns(7, 20);
  const std::vector<float> values = counted(60);
  opened->upload(values.data(), part);
  EXPECT_EQ(downloaded(part), values);
  const std::vector<float> all = downloaded(whole);
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), 60.0 * 61 / 2);
  EXPECT_EQ(all[70 + 7], 1.0F);
  EXPECT_EQ(all[3 * 70 + 26], 60.0F);
}

TEST_P(QueueSessionTest, LargeCopiesGoPieceByPiece) {
  // Rows longer than a piece of pinned memory, and many short ones.
  for (const int64_t rows : {1, 2, 5000}) {
    const std::vector<float> values = counted(size_t{6} * 1000 * 1000);
    const Tensor x = uploaded(values, rows);
    enqueue_add_one(x);
    EXPECT_EQ(downloaded(x), counted(values.size(), 2)) << rows;
    const Tensor part = x.columns(0, x.cols() - 1);
    EXPECT_EQ(downloaded(part).back(), downloaded(x)[values.size() - 2]) << rows;
  }
}

TEST_P(QueueSessionTest, OpsSeeUploads) {
  const Tensor x = uploaded(counted(3 * 40), 3);
  enqueue_add_one(x.rows(1, 2));
  const std::vector<float> back = downloaded(x);
  EXPECT_EQ(back[39], 40.0F);
  EXPECT_EQ(back[40], 42.0F);
  EXPECT_EQ(back[119], 121.0F);
}

TEST_P(QueueSessionTest, StagedValuesStayUntilTheirOpsAreDone) {
  const Tensor y = opened->allocate(50, 8, DType::kFloat32);
  const Tensor slow = uploaded(counted(8), 1);
  enqueue_slow_copy(slow, y.rows(0, 1));
  cl::Kernel copy = test_kernel(*session, kText, "copy_slowly");
  for (int64_t i = 0; i < 50; ++i) {
    const std::vector<float> values = counted(8, static_cast<float>(i));
    const cl::Buffer staged = session->stage(std::span<const float>(values));
    session->launch(copy, {1, 1, 1}, {1, 1, 1}, staged, cl_long{0}, cl_long{8},
                    MatrixArg(y.rows(i, 1)), cl_int{8}, cl_int{1});
  }
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(downloaded(y.rows(i, 1)), counted(8, static_cast<float>(i)));
  }
}

TEST_P(QueueSessionTest, LaterOpsDoNotDelayAnEarlierDownload) {
  const Tensor x = uploaded(counted(1000), 1);
  const Tensor y = opened->allocate(1, 1000, DType::kFloat32);
  enqueue_add_one(x);
  const uint64_t mark = opened->mark();
  for (int i = 0; i < 8; ++i) enqueue_slow_copy(x, y);
  const uint64_t all = opened->mark();
  std::vector<float> back(1000);
  opened->download_at(mark, x, back.data());
  EXPECT_LT(session->done(), all);
  EXPECT_EQ(back, counted(1000, 2));
  opened->wait_for(all);
  EXPECT_EQ(session->done(), all);
  EXPECT_EQ(downloaded(y), counted(1000, 2));
}

TEST_P(QueueSessionTest, UploadsToFreshTensorsDoNotWaitForOps) {
  const Tensor x = uploaded(counted(1000), 1);
  const Tensor y = opened->allocate(1, 1000, DType::kFloat32);
  for (int i = 0; i < 8; ++i) enqueue_slow_copy(x, y);
  const uint64_t all = opened->mark();
  const Tensor z = uploaded(counted(2000, 5), 1);
  EXPECT_LT(session->done(), all);
  enqueue_add_one(z);
  EXPECT_EQ(downloaded(z), counted(2000, 6));
}

TEST_P(QueueSessionTest, UploadsToRecycledMemoryWaitForWhatStillReadsIt) {
  Tensor x = uploaded(counted(1000), 1);
  const Tensor y = opened->allocate(1, 1000, DType::kFloat32);
  enqueue_slow_copy(x, y);
  x = {};
  const Tensor z = uploaded(counted(1000, 5), 1);  // where x was
  opened->upload(counted(500, 7).data(), z.columns(0, 500));
  EXPECT_EQ(downloaded(y), counted(1000));
  EXPECT_EQ(downloaded(z.columns(0, 500)), counted(500, 7));
  EXPECT_EQ(downloaded(z.columns(500, 500)), counted(500, 505));
}

TEST_P(QueueSessionTest, UploadsPreferMemoryThatOpsHaveDoneWith) {
  Tensor x = uploaded(counted(1000), 1);
  Tensor idle = uploaded(counted(1000), 1);
  const Tensor y = opened->allocate(1, 1000, DType::kFloat32);
  opened->wait();
  idle = {};
  for (int i = 0; i < 8; ++i) enqueue_slow_copy(x, y);
  const uint64_t all = opened->mark();
  x = {};  // given back last, so the first to be taken
  const Tensor z = uploaded(counted(1000, 5), 1);
  EXPECT_LT(session->done(), all);
  EXPECT_EQ(downloaded(z), counted(1000, 5));
  EXPECT_EQ(downloaded(y), counted(1000));
}

TEST_P(QueueSessionTest, TensorsMayBeDroppedOnOtherThreads) {
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> tensors;
    for (int64_t n = 1; n <= 20; ++n) {
      tensors.push_back(uploaded(counted(1000), 1));
      enqueue_add_one(tensors.back());
    }
    std::jthread other([dropped = std::move(tensors)]() mutable { dropped.clear(); });
    const Tensor mine = uploaded(counted(1000, 3), 1);
    enqueue_add_one(mine);
    EXPECT_EQ(downloaded(mine), counted(1000, 4));
  }
  EXPECT_EQ(opened->memory().used, 0U);
}

TEST_P(QueueSessionTest, MemoryMayOutliveItsDevice) {
  Tensor x = uploaded(counted(1000), 1);
  opened.reset();
  x = {};
  EXPECT_EQ(Ledger::instance().taken(device().info.memory_pool), 0U);
}

}  // namespace
}  // namespace quintet::opencl
