// The trace is JSON when closed, and one bracket short of it at any time before.
#include "pipeline/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "quintet/error.h"

namespace quintet {
namespace {

using std::chrono::microseconds;

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::filesystem::path temporary(const char* name) {
  return std::filesystem::path(testing::TempDir()) / name;
}

TEST(Trace, IsAnArrayOfEvents) {
  const auto path = temporary("trace.json");
  Trace trace(path);
  const int reader = trace.add_track("reader \"x\" \xff");
  const int stage = trace.add_track("stage 0");
  const auto now = std::chrono::steady_clock::now();
  trace.add(reader, {.name = "read", .begin = now, .end = now + microseconds(10)});
  trace.add(stage, {.name = "compute",
                    .begin = now + microseconds(10),
                    .end = now + microseconds(1510),
                    .batch = 7,
                    .tokens = 512});
  trace.close();
  const auto events = nlohmann::json::parse(read(path));
  ASSERT_EQ(events.size(), 6);
  EXPECT_EQ(events[2]["args"]["name"], "stage 0");
  EXPECT_EQ(events[4]["tid"], reader);
  EXPECT_TRUE(events[4]["args"].empty());
  EXPECT_EQ(events[5]["ph"], "X");
  EXPECT_EQ(events[5]["tid"], stage);
  EXPECT_EQ(events[5]["args"]["batch"], 7);
  EXPECT_EQ(events[5]["args"]["tokens"], 512);
  EXPECT_NEAR(events[5]["dur"].get<double>(), 1500.0, 0.01);
  EXPECT_NEAR(events[5]["ts"].get<double>() - events[4]["ts"].get<double>(), 10.0, 0.01);
}

TEST(Trace, GrowsAsTheRunGoesAndNeedsOnlyItsBracket) {
  const auto path = temporary("long_trace.json");
  Trace trace(path);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&trace, t] {
      const int track = trace.add_track("track " + std::to_string(t));
      for (int i = 0; i < 2000; ++i) {
        const auto now = std::chrono::steady_clock::now();
        trace.add(track, {.name = "compute", .begin = now, .end = now, .batch = i});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string unfinished = read(path);
  EXPECT_GT(unfinished.size(), 200'000);
  EXPECT_GT(nlohmann::json::parse(unfinished + "]").size(), 2000);
  trace.close();
  EXPECT_EQ(nlohmann::json::parse(read(path)).size(), 3 * 2002);
}

TEST(Trace, WithoutEvents) {
  const auto path = temporary("empty_trace.json");
  Trace(path).close();
  EXPECT_TRUE(nlohmann::json::parse(read(path)).empty());
}

TEST(Trace, SaysThatItCannotWrite) {
  EXPECT_THROW(Trace("/nonexistent/trace.json"), Error);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  Trace trace("/dev/full");
  trace.add_track("x");
  EXPECT_THROW(trace.close(), Error);
}

}  // namespace
}  // namespace quintet
