#include "conformance/isolation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace quintet::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Log {
  std::vector<std::string> lines;
  IsolatedEvents events() {
    return {
        .ready = [this](const std::string& text) { lines.push_back(text); },
        .started = [](size_t) {},
        .done = [this](size_t i,
                       const std::string& text) { lines.push_back(fmt::format("{} {}", i, text)); },
        .lost = [this](size_t i, const std::string& how,
                       double) { lines.push_back(fmt::format("{} lost, {}", i, how)); }};
  }
};

TEST(Isolation, ItemsInOrder) {
  Log log;
  run_isolated({.prepare = [] { return "here"; },
                .n_items = 3,
                .run = [](size_t i) { return fmt::format("line\n{}", i); }},
               log.events());
  EXPECT_THAT(log.lines, ElementsAre("here", "0 line\n0", "1 line\n1", "2 line\n2"));
}

TEST(Isolation, GoesOnBehindAnItemThatCrashes) {
  Log log;
  run_isolated({.prepare = [] { return "here"; },
                .n_items = 4,
                .run =
                    [](size_t i) {
                      if (i == 1) ::raise(SIGKILL);
                      if (i == 3) ::_exit(9);
                      return "done";
                    }},
               log.events());
  EXPECT_THAT(log.lines, ElementsAre("here", "0 done", HasSubstr("1 lost, ended by signal 9"),
                                     "2 done", "3 lost, ended with status 9"));
}

TEST(Isolation, GoesOnBehindAnItemThatHangs) {
  Log log;
  run_isolated({.prepare = [] { return "here"; },
                .n_items = 2,
                .run =
                    [](size_t i) {
                      if (i == 0) std::this_thread::sleep_for(std::chrono::minutes(5));
                      return "done";
                    },
                .limit = std::chrono::seconds(1)},
               log.events());
  EXPECT_THAT(log.lines, ElementsAre("here", HasSubstr("0 lost, still at it after 1 s"), "1 done"));
}

TEST(Isolation, ErrorsOfThePreparationArrive) {
  Log log;
  try {
    run_isolated({.prepare = []() -> std::string { fail(ErrorKind::kDevice, "no such device"); },
                  .n_items = 1,
                  .run = [](size_t) { return ""; }},
                 log.events());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_STREQ(error.what(), "no such device");
  }
}

}  // namespace
}  // namespace quintet::conformance
