// Every option of every command: name, default, help and range stand once, in options.cpp. The
// command line, and later the server and the Python module, read the same table.
#ifndef QUINTET_ENGINE_OPTIONS_H_
#define QUINTET_ENGINE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "core/dtype.h"
#include "input/reader.h"
#include "output/writer.h"
#include "tokenizer/protein.h"

namespace quintet {

enum class OnDuplicate { kReject, kRename, kFirst };

// What a command was asked to do. Defaults are those of the table.
struct Options {
  // model and devices
  std::string model;
  std::vector<std::string> backends;  // files of backend modules, loaded before devices are named
  std::string devices;                // empty: those of an explicit map, else cpu:0
  std::string device_map = "auto";    // auto | even | FILE.json | JSON
  std::string max_memory;
  std::optional<DType> dtype;  // empty: as stored
  int threads = 0;
  int64_t tokens_per_batch = 0;  // 0: chosen by the plan
  bool lend_cores = true;

  // input
  std::string input;
  InputFormat input_format = InputFormat::kAuto;
  ProteinOptions protein;
  int64_t max_tokens = 0;  // 0: never cut
  bool skip_empty = false;
  OnDuplicate on_duplicate = OnDuplicate::kReject;
  int64_t shard_index = 0;  // of shard_count, from 0
  int64_t shard_count = 1;
  std::vector<int32_t> lengths;  // plan: instead of an input file

  // generate, score
  std::string generation_config;  // a JSON file of options in Hugging Face's names
  // Those given by options of their own: a name and its value, as JSON where that is valid.
  std::vector<std::pair<std::string, std::string>> generation;
  int64_t batch_size = 0;  // sequences that make their steps together; 0: chosen by the plan
  bool skip_special_tokens = false;
  bool stream = false;
  bool add_bos = false;
  std::string choices;  // score: pieces, between commas
  std::string logits;   // score: a .safetensors file

  // output
  std::string output;
  std::optional<OutputFormat> output_format;  // empty: by the extension
  Hdf5Layout layout = Hdf5Layout::kProtTrans;
  std::optional<DType> output_dtype;  // empty: float32; of the tmbed layout float16
  std::optional<Pooling> pool;
  bool normalize = false;
  bool drop_masked_rows = false;
  bool overwrite = false;
  bool resume = false;
  std::string trace;
  std::string stats;
  std::string svg;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

// Every shard_count-th record belongs to a shard.
inline bool is_of_shard(const Options& options, uint64_t ordinal) {
  return ordinal % static_cast<uint64_t>(options.shard_count) ==
         static_cast<uint64_t>(options.shard_index);
}

// Which commands know an option; a bit each.
enum Command : unsigned {
  kEmbed = 1,
  kPlan = 2,
  kTokenize = 4,
  kDevices = 8,
  kInfo = 16,
  kMerge = 32,
  kGenerate = 64,
  kScore = 128
};

struct OptionSpec {
  std::string_view name;     // without the dashes
  std::string_view value;    // how help calls the value; empty: a flag
  std::string_view initial;  // the default as help shows it
  std::string_view help;
  unsigned commands;
  bool required;
  // Checks the value and stores it; throws Error(kUsage) that names the option, the value and what
  // is accepted. Flags get "".
  void (*set)(Options& options, std::string_view value);
};

std::span<const OptionSpec> option_table();

}  // namespace quintet

#endif  // QUINTET_ENGINE_OPTIONS_H_
