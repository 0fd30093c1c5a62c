// Help, and what wrong usage is told: exit code 2, and a message with option, value and what is
// accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/test_folder.h"
#include "program.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Usage : public testing::Test {
 protected:
  Usage() { write_file(folder_ / "in.fasta", ">a\nMKV\n"); }

  Outcome embed_with(const std::vector<std::string>& more) {
    return embed(example_model(), folder_ / "in.fasta", folder_ / "out.h5", more);
  }

  TestFolder folder_;
};

TEST_F(Usage, HelpNamesCommandsAndOptions) {
  const Outcome all = run_quintet({"--help"});
  EXPECT_EQ(all.code, 0);
  for (const char* command : {"embed", "plan", "tokenize", "info", "devices", "merge"}) {
    EXPECT_THAT(all.out, HasSubstr(command));
    EXPECT_EQ(run_quintet({command, "--help"}).code, 0) << command;
  }
  EXPECT_THAT(run_quintet({"embed", "--help"}).out,
              AllOf(HasSubstr("--on-duplicate"), HasSubstr("[reject]"), HasSubstr("--resume")));
  EXPECT_THAT(run_quintet({"--version"}).out, HasSubstr("quintet "));
}

TEST_F(Usage, NamesWhatIsUnknown) {
  const auto says = [](const std::vector<std::string>& arguments, const std::string& text) {
    const Outcome outcome = run_quintet(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_THAT(outcome.out, IsEmpty());
  };
  says({},
       "no command is given; there are embed, generate, score, plan, tokenize, info, devices, "
       "merge");
  says({"embd"}, "embd: no such command; there are embed, generate");
  says({"embed", "--modle", "x"}, "--modle: no such option; quintet embed --help lists them");
  says({"devices", "twice"}, "twice: nothing is known to do with it");
  says({"embed"}, "--model is required; quintet embed --help");
  says({"info"}, "required; quintet info --help");
  says({"merge", "a.h5"}, "--output is missing");
  const std::string model = example_model().string();
  says({"embed", "--model", model}, "--input is missing");
  says({"embed", "--model", model, "--input", "x"}, "--output is missing");
  says({"tokenize", "--model", model}, "--input is missing");
}

TEST_F(Usage, RefusesValuesByOptionValueAndWhatIsAccepted) {
  const auto says = [&](const std::vector<std::string>& more, const std::string& text) {
    const Outcome outcome = embed_with(more);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
  };
  says({"--pool", "max"}, "--pool max: expected one of none, mean, first, last");
  says({"--threads", "0"}, "--threads 0: expected a whole number from 1 to 4096");
  says({"--max-tokens", "many"}, "--max-tokens many: expected a whole number");
  says({"--dtype", "float8"}, "--dtype float8: expected one of float32, float16, bfloat16");
  says({"--shard", "4/3"}, "--shard 4: expected a whole number from 1 to 3");
  says({"--normalize"}, "--pool");
  says({"--overwrite", "--resume"}, "--overwrite and --resume exclude each other");
  says({"--devices", ""}, "--devices '': expected at least one device");
  says({"--devices", "cpu:99"}, "cpu:99: no such device; this process has cpu:0");
  says({"--devices", "gpu"}, "gpu");
  says({"--max-memory", "much"}, "much");
  says({"--max-memory", "cpu:99=1GiB"}, "cpu:99");
  EXPECT_THAT(folder_.names(), ElementsAre("in.fasta"));  // and nothing is left behind
}

TEST_F(Usage, OutputsThatCannotBe) {
  const auto says = [&](const std::string& output, const std::vector<std::string>& more,
                        const std::string& text) {
    const Outcome outcome = embed(example_model(), folder_ / "in.fasta", folder_ / output, more);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
  };
  says("out.npy", {}, "--pool");
  says("out.xyz", {}, ".xyz");
  says("out.h5", {"--layout", "tmbed", "--output-dtype", "float32"}, "float16");
  EXPECT_EQ(embed(example_model(), folder_ / "in.fasta", "-", {"--resume"}).code, 2);
}

// Every fault of a map is listed at once.
TEST_F(Usage, DeviceMapFaultsAreListedTogether) {
  const std::string device = one_core_devices().front();
  const auto map_error = [&](const std::string& map) {
    const Outcome outcome = embed_with({"--device-map", map});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(map_error(R"({")" + device + R"(":[0,1,1,7,3,4,5]})"),
              AllOf(HasSubstr("duplicate blocks: 1"), HasSubstr("missing blocks: 2"),
                    HasSubstr("extra blocks: 7")));
  EXPECT_THAT(map_error(R"({")" + device + R"(":[1,0,2,3,4,5]})"), HasSubstr("rising order"));
  EXPECT_THAT(map_error("{}"), HasSubstr("is empty"));
  EXPECT_THAT(map_error(R"({"cpu:0":[]})"), HasSubstr("without blocks"));
  EXPECT_THAT(map_error("evn"), HasSubstr("use auto, even"));
  EXPECT_THAT(map_error(R"({"cpu:99":[0,1,2,3,4,5]})"), HasSubstr("no such device"));
}

// What a command line names and is not there, or is of another kind, is wrong usage.
TEST_F(Usage, NamesThatLeadNowhere) {
  const std::string model = example_model().string();
  const std::string input = (folder_ / "in.fasta").string();
  const std::string none = (folder_ / "none").string();
  const std::string output = (folder_ / "out.jsonl").string();
  const auto says = [](const std::vector<std::string>& arguments, const std::string& text) {
    const Outcome outcome = run_quintet(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
  };
  for (const std::string command : {"embed", "generate", "score", "plan", "tokenize"}) {
    std::vector<std::string> rest;
    if (command != "plan") rest = {"--output", output};
    const auto with = [&](const std::string& folder, const std::string& file) {
      std::vector<std::string> arguments{command, "--model", folder, "--input", file};
      arguments.insert(arguments.end(), rest.begin(), rest.end());
      return arguments;
    };
    says(with("Rostlab/prot_t5", input), "--model Rostlab/prot_t5: no such folder");
    says(with(input, input), "--model " + input + ": no such folder");
    says(with(model, none), "--input " + none + ": cannot be read: No such file");
    says(with(model, folder_ / "."), "is a folder, expected a file");
  }
  says({"info", none}, "info " + none + ": no such folder");
  says({"merge", none + ".h5", "--output", (folder_ / "all.h5").string()}, "no such file");
  const std::string decoder = std::string(QUINTET_FIXTURES) + "/decoders/gpt2";
  says({"generate", "--model", decoder, "--input", input, "--output", output, "--generation-config",
        none},
       "--generation-config " + none + ": cannot be read");
  says({"embed", "--model", model, "--input", input, "--output", output, "--device-map",
        folder_ / "."},
       "is a folder, expected a file");
  says({"embed", "--model", model, "--input", input, "--output", output, "--device-map", none},
       "--device-map " + none + ": no such file");
  says({"embed", "--model", model, "--input", input, "--output", none + "/x.h5"},
       "--output " + none + "/x.h5: cannot be written");
  says({"tokenize", "--model", model, "--input", input, "--output", none + "/x.jsonl"},
       "--output " + none + "/x.jsonl: cannot be written");
  EXPECT_THAT(folder_.names(), ElementsAre("in.fasta"));
}

// What is wrong inside of them fails the run.
TEST_F(Usage, BrokenFilesAreNamed) {
  const auto says = [&](const std::filesystem::path& model, const std::filesystem::path& input,
                        const std::string& text) {
    const Outcome outcome = embed(model, input, folder_ / "out.h5");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_THAT(outcome.err, Not(HasSubstr("terminate")));
  };
  const auto input = folder_ / "in.fasta";
  const auto broken = folder_ / "broken";
  std::filesystem::create_directory(broken);
  write_file(broken / "config.json", "{\"model_type\": \"t5\", ");
  says(broken, input, "config.json");
  write_file(broken / "config.json", "{\"model_type\": \"bert\"}");
  says(broken, input, "bert");
  std::filesystem::copy_file(example_model() / "config.json", broken / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  says(broken, input, "model.safetensors");
  const std::string weights = read_file(example_model() / "model.safetensors");
  write_file(broken / "model.safetensors", weights.substr(0, weights.size() / 2));
  says(broken, input, "model.safetensors");
  write_file(broken / "model.safetensors", weights);
  says(broken, input, "tokenizer.json");
}

// Where side files cannot be written is told before the work, not after it.
TEST_F(Usage, SideFilesThatCannotBeWritten) {
  const std::string nowhere = (folder_ / "none" / "x.json").string();
  for (const std::string option : {"--stats", "--trace"}) {
    const Outcome outcome = embed_with({option, nowhere});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(nowhere), HasSubstr("No such file")));
  }
  EXPECT_THAT(folder_.names(), ElementsAre("in.fasta"));
}

TEST_F(Usage, FullStandardOutput) {
  const std::string in = (folder_ / "in.fasta").string();
  const std::string model = example_model().string();
  for (const auto& arguments : {std::vector<std::string>{"info", model},
                                {"tokenize", "--model", model, "--input", in},
                                {"embed", "--model", model, "--input", in, "--output", "-"}}) {
    const Outcome outcome = run_quintet(arguments, {.output = "/dev/full"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("cannot write"));
  }
}

}  // namespace
}  // namespace quintet
