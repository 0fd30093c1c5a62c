// Runs that are ended on the way: killed, interrupted, out of disk. --resume must give the file of
// an uninterrupted run, and compute nothing that is finished already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>

#include "output/test_folder.h"
#include "program.h"
#include "results.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRecords = 300;

class Resume : public testing::Test {
 protected:
  Resume() {
    std::mt19937 random(1);
    std::string text;
    for (int i = 0; i < kRecords; ++i) {
      text += ">r" + std::to_string(i) + "\n";
      for (size_t n = 40 + random() % 40; n > 0; --n) text += "ACDEFGHIKLMNPQRSTVWY"[random() % 20];
      text += "\n";
    }
    write_file(input_, text);
  }

  // Small micro-batches: something is finished early.
  Outcome run(const std::string& output, std::vector<std::string> more = {},
              const RunSettings& settings = {}) {
    more.insert(more.end(), {"--threads", "1", "--tokens-per-batch", "100", "--stats",
                             (folder_ / "stats.json").string()});
    return embed(example_model(), input_, folder_ / output, more, settings);
  }

  // Sends `signal` once the spool has grown to a third of what it will be.
  RunSettings signal_in_the_middle(int signal, const std::string& output) {
    const std::filesystem::path spool = folder_ / (output + ".spool");
    return {.signal_now = [spool, signal] {
      std::error_code error;
      const auto size = std::filesystem::file_size(spool, error);
      return !error && size > kRecords * 60 * 64 * sizeof(float) / 3 ? signal : 0;
    }};
  }

  void expect_resumes(const std::string& output) {
    ASSERT_TRUE(std::filesystem::exists(folder_ / (output + ".spool")));
    const Outcome resumed = run(output, {"--resume"});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    const auto stats = read_json(folder_ / "stats.json");
    EXPECT_GT(stats["resumed"], kRecords / 5);
    EXPECT_LT(stats["resumed"], kRecords);
    EXPECT_EQ(stats["resumed"].get<int>() + stats["records"].get<int>(), kRecords);
    EXPECT_EQ(stats["embedded"], kRecords);
    EXPECT_EQ(run("whole.safetensors").code, 0);
    EXPECT_EQ(read_file(folder_ / output), read_file(folder_ / "whole.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / (output + ".spool")));
  }

  TestFolder folder_;
  std::filesystem::path input_ = folder_ / "in.fasta";
};

TEST_F(Resume, AfterKill) {
  const Outcome killed =
      run("out.safetensors", {}, signal_in_the_middle(SIGKILL, "out.safetensors"));
  ASSERT_EQ(killed.signal, SIGKILL);
  // And the last record only half written.
  const auto spool = folder_ / "out.safetensors.spool";
  std::filesystem::resize_file(spool, std::filesystem::file_size(spool) - 100);
  const Outcome refused = run("out.safetensors");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--resume"));
  const Outcome other = run("out.safetensors", {"--resume", "--pool", "mean"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err,
              AllOf(HasSubstr(R"(pool was "none", is "mean")"), HasSubstr("--overwrite")));
  expect_resumes("out.safetensors");
}

TEST_F(Resume, AfterSignals) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string output = "out" + std::to_string(signal) + ".safetensors";
    const Outcome stopped = run(output, {}, signal_in_the_middle(signal, output));
    EXPECT_EQ(stopped.code, 130) << stopped.err;
    EXPECT_THAT(stopped.err, AllOf(HasSubstr("interrupted"), HasSubstr("--resume")));
    EXPECT_FALSE(std::filesystem::exists(folder_ / output));
    std::filesystem::remove(folder_ / "whole.safetensors");
    expect_resumes(output);
  }
}

// Of a record that takes many minutes, which the signal does not wait for.
TEST_F(Resume, AfterASignalInALongMicroBatch) {
  write_file(input_, ">a\nMKV\n>b\nMKL\n>long\n" + std::string(200'000, 'M') + "\n");
  using Clock = std::chrono::steady_clock;
  for (const std::string more : {"--overwrite", "--resume"}) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point ready;
    Clock::time_point sent;
    const auto spool = folder_ / "out.safetensors.spool";
    RunSettings settings;
    settings.signal_now = [&] {  // two records stand in it, the third is under way
      std::error_code none;
      const auto size = std::filesystem::file_size(spool, none);
      if (Clock::now() - begin > std::chrono::minutes(2)) return SIGKILL;
      if (none || size < 6 * 64 * sizeof(float)) return 0;
      if (ready == Clock::time_point{}) ready = Clock::now();
      sent = Clock::now();
      return sent - ready > std::chrono::seconds(2) ? SIGINT : 0;
    };
    const Outcome stopped = run("out.safetensors", {more}, settings);
    EXPECT_LT(Clock::now() - sent, std::chrono::seconds(20));
    EXPECT_EQ(stopped.code, 130) << stopped.err;
    EXPECT_THAT(stopped.err, AllOf(HasSubstr("interrupted"), HasSubstr("--resume")));
    EXPECT_GE(std::filesystem::file_size(spool), 6 * 64 * sizeof(float));
  }
}

// A file size limit acts as a full disk does.
TEST_F(Resume, AfterAFullDisk) {
  const Outcome full = run("out.safetensors", {}, {.most_file_bytes = 1'500'000});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, AllOf(HasSubstr("out.safetensors.spool"), HasSubstr("cannot write")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.safetensors"));
  expect_resumes("out.safetensors");
}

// The spool fits, the file that is built from it at the end does not.
TEST_F(Resume, AfterADiskThatIsFullAtTheEnd) {
  const auto spool_size = kRecords * 62 * 64 * sizeof(float);
  const Outcome full = run("out.jsonl", {}, {.most_file_bytes = spool_size * 3 / 2});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, AllOf(HasSubstr("out.jsonl"), HasSubstr("cannot write")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.jsonl"));
  EXPECT_EQ(run("out.jsonl", {"--resume"}).code, 0);
  const auto stats = read_json(folder_ / "stats.json");
  EXPECT_EQ(stats["records"], 0);
  EXPECT_EQ(stats["resumed"], kRecords);
  EXPECT_EQ(run("whole.jsonl").code, 0);
  EXPECT_EQ(read_file(folder_ / "out.jsonl"), read_file(folder_ / "whole.jsonl"));
}

TEST_F(Resume, ASecondRunKeepsOutOfTheFirstOnesOutput) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {  // enough for the first run to outlast the second
    text += ">r" + std::to_string(i) + "\n" + std::string(50, 'M');
    for (int number = i; number > 0; number /= 4) text += "ACDE"[number % 4];
    text += "\n";
  }
  write_file(input_, text);
  RunSettings settings = signal_in_the_middle(SIGKILL, "out.safetensors");
  const auto middle = settings.signal_now;
  settings.signal_now = [&] {
    const int signal = middle();
    if (signal == 0) return signal;
    const Outcome second = run("out.safetensors", {"--overwrite"});
    EXPECT_EQ(second.code, 2);
    EXPECT_THAT(second.err, HasSubstr("out.safetensors.spool"));
    return signal;
  };
  ASSERT_EQ(run("out.safetensors", {}, settings).signal, SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out.safetensors.spool"));
}

TEST_F(Resume, OfNothingIsAPlainStartAndOfAWholeRunNothingToDo) {
  write_file(input_, ">a\nMK\n>b\n>c\nMV\n");
  EXPECT_EQ(run("out.safetensors", {"--resume"}).code, 1);  // b is empty
  const std::string before = read_file(folder_ / "out.safetensors");
  const Outcome again = run("out.safetensors", {"--resume"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("is complete already: 2 records, 1 rejected"));
  EXPECT_EQ(read_file(folder_ / "out.safetensors"), before);
  const auto stats = read_json(folder_ / "stats.json");
  EXPECT_EQ(stats["records"], 0);
  // Where and how it is computed does not matter, what is computed does.
  EXPECT_EQ(run("out.safetensors", {"--resume", "--device-map", "even", "--no-lend"}).code, 1);
  const Outcome other = run("out.safetensors", {"--resume", "--on-duplicate", "first"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr(R"(on-duplicate was "reject", is "first")"));
  write_file(input_, ">a\nMK\n");
  const Outcome other_input = run("out.safetensors", {"--resume"});
  EXPECT_EQ(other_input.code, 2);
  EXPECT_THAT(other_input.err, HasSubstr("input was"));
}

TEST_F(Resume, NeedsAnInputThatCanBeReadAgain) {
  const Outcome outcome = embed(example_model(), "-", folder_ / "x.h5", {"--resume"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--input"));
}

// Rejected and shared records are finished records, too.
TEST_F(Resume, KeepsRejectsAndSharedSequences) {
  std::string text = read_file(input_);
  text = ">first\nMKV\n>bad\nM*K\n>second\nMKV\n>r5\nAAA\n" + text + ">last\nMKV\n>r5\nMM\n";
  write_file(input_, text);
  const Outcome killed =
      run("out.safetensors", {}, signal_in_the_middle(SIGKILL, "out.safetensors"));
  ASSERT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(run("out.safetensors", {"--resume"}).code, 1);
  const auto stats = read_json(folder_ / "stats.json");
  EXPECT_GT(stats["resumed"], kRecords / 5);
  EXPECT_LT(stats["resumed"], kRecords);
  EXPECT_EQ(run("whole.safetensors").code, 1);
  EXPECT_EQ(read_file(folder_ / "out.safetensors"), read_file(folder_ / "whole.safetensors"));
  EXPECT_EQ(read_file(folder_ / "out.safetensors.rejects.jsonl"),
            read_file(folder_ / "whole.safetensors.rejects.jsonl"));
}

}  // namespace
}  // namespace quintet
