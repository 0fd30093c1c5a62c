#include "placement/calibration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace quintet {
namespace {

namespace fs = std::filesystem;

class Calibration : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("quintet calibration " +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  DeviceSpeed ask(const CalibrationKey& key) {
    return calibrate(
        key,
        [&] {
          ++measured_;
          return speed_;
        },
        folder_);
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  int measured_ = 0;
  const CalibrationKey key_ = {"CPU X, 2 cores of kind 0", 2, "0.1.0"};
  const DeviceSpeed speed_ = {9.25e10, 9.1e10, 9.0e10, 4.5e10, 1.2e10};
};

TEST_F(Calibration, MeasuresOncePerKey) {
  for (int i = 0; i < 3; ++i) {
    const DeviceSpeed speed = ask(key_);
    EXPECT_EQ(speed.float32_flops, 9.25e10);
    EXPECT_EQ(speed.product_flops(DType::kBFloat16), 9.1e10);
    EXPECT_EQ(speed.product_flops(DType::kFloat16), 9.0e10);
    EXPECT_EQ(speed.attention_flops, 4.5e10);
    EXPECT_EQ(speed.bytes_per_second, 1.2e10);
  }
  EXPECT_EQ(measured_, 1);
  for (const CalibrationKey& other : {CalibrationKey{"CPU Y", 2, "0.1.0"},
                                      {key_.hardware, 1, "0.1.0"},
                                      {key_.hardware, 2, "0.2"}}) {
    ask(other);
  }
  EXPECT_EQ(measured_, 4);
  EXPECT_EQ(files(), 4U);
}

TEST_F(Calibration, NonsenseInTheCacheIsMeasuredAnew) {
  ask(key_);
  const fs::path file = fs::directory_iterator(folder_)->path();
  for (const char* text :
       {"", "{", "[]", "{\"key\": 3}", "\xff\xfe", "{\"key\": \"other\"}",
        R"({"key": "CPU X, 2 cores of kind 0 | 2 threads | 0.1.0", "float32_flops": -1})"}) {
    std::ofstream(file) << text;
    measured_ = 0;
    EXPECT_EQ(ask(key_).float32_flops, 9.25e10) << text;
    EXPECT_EQ(measured_, 1) << text;
    ask(key_);
    EXPECT_EQ(measured_, 1) << "the broken file was not replaced";
  }
  EXPECT_EQ(files(), 1U);
}

TEST_F(Calibration, SpeedsThatNoDeviceHasAreMeasuredAnew) {
  ask(key_);
  const fs::path file = fs::directory_iterator(folder_)->path();
  for (const char* name : {"float32_flops", "attention_flops", "bytes_per_second"}) {
    for (const double speed : {1.0, 9e5, 2e16, 1e300, 0.0, -1e9}) {
      nlohmann::json cached = nlohmann::json::parse(std::ifstream(file));
      cached[name] = speed;
      std::ofstream(file) << cached;
      measured_ = 0;
      EXPECT_EQ(ask(key_).float32_flops, 9.25e10);
      EXPECT_EQ(measured_, 1) << name << ' ' << speed;
    }
  }
}

TEST_F(Calibration, AFolderThatCannotBeWrittenIsNoError) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file where the folder should be";
  EXPECT_EQ(ask(key_).float32_flops, 9.25e10);
  EXPECT_EQ(ask(key_).float32_flops, 9.25e10);
  EXPECT_EQ(measured_, 2);
}

TEST_F(Calibration, AFolderInTheFilesPlaceIsNoError) {
  ask(key_);
  const fs::path file = fs::directory_iterator(folder_)->path();
  fs::remove(file);
  fs::create_directories(file / "x");
  EXPECT_EQ(ask(key_).float32_flops, 9.25e10);
  EXPECT_EQ(files(), 1U);
}

TEST_F(Calibration, WhatMeasuringThrowsComesThrough) {
  EXPECT_THROW(calibrate(
                   key_, []() -> DeviceSpeed { throw std::runtime_error("broken"); }, folder_),
               std::runtime_error);
}

TEST(CacheFolder, FollowsTheEnvironment) {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const std::string old = xdg == nullptr ? "" : xdg;
  setenv("XDG_CACHE_HOME", "/x/y", 1);
  EXPECT_EQ(cache_folder(), fs::path("/x/y/quintet"));
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_NE(cache_folder(), fs::path("relative/quintet"));
  if (old.empty()) {
    unsetenv("XDG_CACHE_HOME");
  } else {
    setenv("XDG_CACHE_HOME", old.c_str(), 1);
  }
}

}  // namespace
}  // namespace quintet
