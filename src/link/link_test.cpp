// Links between devices of one memory and of two, and the buffers that rows travel in.
#include "link/link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <numeric>
#include <thread>

#include "link/async_fake_device.h"
#include "link/registry.h"

namespace quintet {
namespace {

Parcel make_parcel(Device& device, int64_t n_rows, int64_t d_model) {
  Parcel parcel;
  std::vector<float> values(static_cast<size_t>(n_rows * d_model));
  std::iota(values.begin(), values.end(), 1.0F);
  parcel.hidden = device.allocate(n_rows, d_model);
  device.upload(values.data(), parcel.hidden);
  return parcel;
}

TEST(Link, HostMemoryIsHandedOver) {
  FakeDevice a("fake:0");
  FakeDevice b("fake:1");
  const auto link = make_link(a, b);
  EXPECT_EQ(link->kind(), "hand-over");
  Parcel parcel = make_parcel(a, 5, 4);
  const Buffer* const buffer = parcel.hidden.buffer().get();
  link->send(parcel, a.mark());
  EXPECT_TRUE(parcel.rows.empty());
  link->receive(parcel);
  EXPECT_EQ(parcel.hidden.buffer().get(), buffer);
  EXPECT_EQ(b.live_bytes, 0);
}

TEST(Link, OtherMemoryGoesThroughTheHost) {
  for (const auto& [host_a, host_b] : {std::pair{true, false}, {false, true}, {false, false}}) {
    FakeDevice a("fake:0", host_a);
    FakeDevice b("fake:1", host_b);
    const auto link = make_link(a, b);
    EXPECT_EQ(link->kind(), "host copy");
    Parcel parcel = make_parcel(a, 5, 4);
    link->send(parcel, a.mark());
    EXPECT_EQ(a.live_bytes, 0);
    EXPECT_EQ(parcel.rows.size(), 20);
    link->receive(parcel);
    EXPECT_TRUE(parcel.rows.empty());
    ASSERT_EQ(parcel.hidden.rows(), 5);
    ASSERT_EQ(parcel.hidden.cols(), 4);
    EXPECT_GT(b.live_bytes, 0);
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t c = 0; c < 4; ++c) {
        EXPECT_EQ(FakeDevice::row(parcel.hidden, i)[c], static_cast<float>(1 + i * 4 + c));
      }
    }
  }
}

// What was called after the mark is still under way when the rows have left.
TEST(Link, RowsLeaveAnAsynchronousDeviceBesideLaterOps) {
  AsyncFakeDevice a("fake:0");
  FakeDevice b("fake:1");
  const auto link = make_link(a, b);
  std::promise<void> arrived;
  Parcel parcel = make_parcel(a, 5, 4);
  a.run([hidden = parcel.hidden] { FakeDevice::row(hidden, 0)[0] = 100; });
  const uint64_t mark = a.mark();
  std::future_status seen = std::future_status::timeout;
  a.run([&] { seen = arrived.get_future().wait_for(std::chrono::seconds(5)); });
  link->send(parcel, mark);
  link->receive(parcel);
  arrived.set_value();
  EXPECT_EQ(FakeDevice::row(parcel.hidden, 0)[0], 100);
  EXPECT_EQ(FakeDevice::row(parcel.hidden, 4)[3], 20);
  a.wait();
  EXPECT_EQ(seen, std::future_status::ready);
}

TEST(HostBuffers, MemoryIsUsedAgain) {
  const auto buffers = HostBuffers::create(2);
  HostRows rows = buffers->take(1000);
  const float* const memory = rows.data();
  rows = {};
  EXPECT_GE(buffers->kept_bytes(), 1000 * sizeof(float));
  rows = buffers->take(1010);  // a little more than before
  EXPECT_EQ(rows.data(), memory);
  EXPECT_EQ(rows.size(), 1010);
  EXPECT_EQ(buffers->kept_bytes(), 0);
}

TEST(HostBuffers, LongRowsDoNotStay) {
  const auto buffers = HostBuffers::create(2);
  const size_t huge = size_t{4} << 20;
  buffers->take(huge);
  EXPECT_GE(buffers->kept_bytes(), huge * sizeof(float));
  for (int i = 0; i < 2; ++i) {
    const HostRows a = buffers->take(100);
    const HostRows b = buffers->take(100);
  }
  EXPECT_LT(buffers->kept_bytes(), 1000 * sizeof(float));
}

TEST(HostBuffers, RowsOutliveTheirHome) {
  HostRows rows;
  {
    const auto buffers = HostBuffers::create(1);
    rows = buffers->take(10);
  }
  rows[9] = 3.0F;
  EXPECT_EQ(rows[9], 3.0F);
}

TEST(HostBuffers, ManyThreads) {
  const auto buffers = HostBuffers::create(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 1; i < 500; ++i) {
        HostRows rows = buffers->take(i);
        rows[i - 1] = static_cast<float>(t);
        const HostRows moved = std::move(rows);
        EXPECT_EQ(moved[i - 1], static_cast<float>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HostBuffers, TooMuchIsAnError) {
  const auto buffers = HostBuffers::create(1);
  EXPECT_THROW(buffers->take(size_t{1} << 62), Error);
  EXPECT_NO_THROW(buffers->take(1));
}

}  // namespace
}  // namespace quintet
