// Memory, copies and marks of one device.
#include "backends/opencl/queue_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_testing.h"

namespace quintet::opencl {
namespace {

using testing::HasSubstr;

constexpr const char* kAddOne = R"(
__kernel void add_one(__global float* x, long offset, long stride, int cols) {
  const long row = get_global_id(0);
  for (int i = 0; i < cols; ++i) x[offset + row * stride + i] += 1;
})";

std::unique_ptr<QueueSession> open(const FoundDevice& device) {
  return std::make_unique<QueueSession>(device);
}

std::vector<float> counted(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST_F(OpenclTest, MemoryIsCountedAndReturnsToZero) {
  OpenclDevice opened(open(device()));
  EXPECT_EQ(opened.memory().used, 0U);
  {
    const Tensor x = opened.allocate(100, 1000, DType::kFloat32);
    EXPECT_GE(opened.memory().used, 400000U);
    EXPECT_LT(opened.memory().used, 440000U);
  }
  EXPECT_EQ(opened.memory().used, 0U);
  EXPECT_GE(opened.memory().peak, 400000U);
}

TEST_F(OpenclTest, TooLargeABufferSaysWhatThereIs) {
  OpenclDevice opened(open(device()));
  try {
    opened.allocate(int64_t{1} << 40, 1 << 10, DType::kFloat32);
    FAIL() << "4 PiB were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_THAT(error.what(), HasSubstr(opened.name()));
    EXPECT_THAT(error.what(), HasSubstr("larger than any buffer"));
  }
  EXPECT_EQ(opened.memory().used, 0U);
}

TEST_F(OpenclTest, ViewsAreCopiedRowByRow) {
  OpenclDevice opened(open(device()));
  const std::vector<float> zeros(5 * 70, 0.0F);
  const Tensor whole = opened.allocate(5, 70, DType::kFloat32);
  opened.upload(zeros.data(), whole);
  const Tensor part = whole.rows(1, 3).columns(7, 20);
  const std::vector<float> values = counted(60);
  opened.upload(values.data(), part);
  std::vector<float> back(60);
  opened.download(part, back.data());
  EXPECT_EQ(back, values);
  std::vector<float> all(5 * 70);
  opened.download(whole, all.data());
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), 60.0 * 61 / 2);
  EXPECT_EQ(all[70 + 7], 1.0F);
  EXPECT_EQ(all[3 * 70 + 26], 60.0F);
}

TEST_F(OpenclTest, OpsSeeUploadsAndStagedValues) {
  auto session = open(device());
  QueueSession& queue = *session;
  OpenclDevice opened(std::move(session));
  cl::Kernel add_one = test_kernel(queue, kAddOne, "add_one");
  const std::vector<float> values = counted(3 * 40);
  const Tensor x = opened.allocate(3, 40, DType::kFloat32);
  opened.upload(values.data(), x);
  queue.launch(add_one, {2, 1, 1}, {0, 0, 0}, MatrixArg(x.rows(1, 2)), cl_int{40});
  std::vector<float> back(3 * 40);
  opened.download(x, back.data());
  EXPECT_EQ(back[39], 40.0F);
  EXPECT_EQ(back[40], 42.0F);
  EXPECT_EQ(back[119], 121.0F);
  const cl::Buffer staged = queue.stage(values.data(), 160);
  queue.launch(add_one, {1, 1, 1}, {0, 0, 0}, staged, cl_long{0}, cl_long{40}, cl_int{40});
  queue.read(staged, 0, 160, back.data());
  EXPECT_EQ(back[0], 2.0F);
}

}  // namespace
}  // namespace quintet::opencl
