#include "engine/options.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/split_list.h"

namespace quintet {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view value,
                         std::string_view accepted) {
  fail(ErrorKind::kUsage, "--{} {}: expected {}", option, value, accepted);
}

int64_t integer(std::string_view option, std::string_view value, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < low || number > high) {
    refuse(option, value, fmt::format("a whole number from {} to {}", low, high));
  }
  return number;
}

template <typename T, size_t N>
T choice(std::string_view option, std::string_view value,
         const std::array<std::pair<std::string_view, T>, N>& choices) {
  std::string names;
  for (const auto& [name, result] : choices) {
    if (name == value) return result;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  refuse(option, value, "one of " + names);
}

DType float_dtype(std::string_view option, std::string_view value) {
  const auto dtype = dtype_from_name(value);
  if (!dtype) refuse(option, value, "one of float32, float16, bfloat16");
  return *dtype;
}

void set_shard(Options& o, std::string_view value) {
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) refuse("shard", value, "i/n, such as 2/8");
  o.shard_count = integer("shard", value.substr(slash + 1), 1, 1'000'000);
  o.shard_index = integer("shard", value.substr(0, slash), 1, o.shard_count) - 1;
}

void set_lengths(Options& o, std::string_view value) {
  while (!value.empty()) {
    const size_t comma = std::min(value.find(','), value.size());
    o.lengths.push_back(
        static_cast<int32_t>(integer("lengths", value.substr(0, comma), 1, 10'000'000)));
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  if (o.lengths.empty()) refuse("lengths", "''", "token counts, such as 300 or 50,300,1200");
}

using Set = void (*)(Options&, std::string_view);

void set_pool(Options& o, std::string_view v) {
  o.pool = choice<std::optional<Pooling>, 4>("pool", v,
                                             {{{"none", std::nullopt},
                                               {"mean", Pooling::kMean},
                                               {"first", Pooling::kFirst},
                                               {"last", Pooling::kLast}}});
}

void set_protein(Options& o, std::string_view v) {
  o.protein.preset = choice<ProteinPreset, 6>("protein", v,
                                              {{{"auto", ProteinPreset::kAuto},
                                                {"prott5", ProteinPreset::kProtT5},
                                                {"prostt5-aa", ProteinPreset::kProstT5Aa},
                                                {"prostt5-3di", ProteinPreset::kProstT53di},
                                                {"ankh", ProteinPreset::kAnkh},
                                                {"none", ProteinPreset::kNone}}});
}

void set_layout(Options& o, std::string_view v) {
  o.layout = choice<Hdf5Layout, 4>("layout", v,
                                   {{{"prottrans", Hdf5Layout::kProtTrans},
                                     {"bio-embeddings", Hdf5Layout::kBioEmbeddings},
                                     {"tmbed", Hdf5Layout::kTmbed},
                                     {"flat", Hdf5Layout::kFlat}}});
}

// An option of generation under Hugging Face's name, checked where all of them come together.
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&literal)[N]) { std::copy_n(literal, N, text); }
};
template <Name kName>
void set_generation(Options& o, std::string_view v) {
  o.generation.emplace_back(kName.text, v.empty() ? "true" : v);
}

constexpr unsigned kJobs = kEmbed | kGenerate | kScore;
constexpr unsigned kRun = kJobs | kPlan;
constexpr unsigned kText = kRun | kTokenize;
constexpr unsigned kOut = kJobs | kTokenize | kMerge;
constexpr unsigned kDecode = kGenerate | kPlan;

const auto kTable = std::to_array<OptionSpec>({
    {"model", "DIR", "", "checkpoint folder as Hugging Face ships it", kText, true,
     [](Options& o, std::string_view v) { o.model = v; }},
    {"input", "FILE", "", "FASTA, text or JSONL, plain or gzip; - is standard input", kText, false,
     [](Options& o, std::string_view v) { o.input = v; }},
    {"output", "FILE", "", "where the results go: embed .h5, .npy, .safetensors or .jsonl, the others .jsonl; - is JSONL on "
     "standard output", kOut, false,
     [](Options& o, std::string_view v) { o.output = v; }},

    {"devices", "LIST", "cpu:0", "devices in the order the blocks pass through them: cpu:0 is a "
     "NUMA node, cpu[0-3] are cores, opencl:0 is an OpenCL device, xpu:0 an Intel GPU, opencl:0/2 "
     "two halves of one; 'cpu[0],opencl:0' are two devices", kRun, false,
     [](Options& o, std::string_view v) {
       if (v.empty()) refuse("devices", "''", "at least one device, such as cpu:0");
       o.devices = v;
     }},
    {"backend", "FILES", "", "modules of further kinds of device, separated by commas", kRun | kDevices, false,
     [](Options& o, std::string_view v) { o.backends = split_list(v); }},
    {"device-map", "MAP", "auto", "which blocks sit where: auto (by measured speed and memory), "
     "even, a JSON file, or JSON such as '{\"cpu[0]\":[0,1],\"cpu[1]\":[2,3]}'", kRun, false,
     [](Options& o, std::string_view v) { o.device_map = v; }},
    {"max-memory", "SIZES", "what is free", "the most a device may use: 2GiB for each, or "
     "'cpu[0]=2GiB,cpu[1]=500MiB'", kRun, false,
     [](Options& o, std::string_view v) { o.max_memory = v; }},
    {"dtype", "TYPE", "as stored", "how weights are kept: float32, bfloat16, float16; sums are "
     "float32 always", kRun, false,
     [](Options& o, std::string_view v) { o.dtype = float_dtype("dtype", v); }},
    {"threads", "N", "one per core", "threads of each CPU device", kRun, false,
     [](Options& o, std::string_view v) {
       o.threads = static_cast<int>(integer("threads", v, 1, 4096));
     }},
    {"tokens-per-batch", "N", "by the plan", "tokens in one micro-batch; a longer record is one of "
     "its own", kRun, false,
     [](Options& o, std::string_view v) {
       o.tokens_per_batch = integer("tokens-per-batch", v, 1, 1 << 24);
     }},
    {"no-lend", "", "", "a CPU device that waits for input does not help the others", kJobs, false,
     [](Options& o, std::string_view) { o.lend_cores = false; }},

    {"input-format", "FORMAT", "auto", "auto, fasta, text (a record per line) or jsonl", kText,
     false,
     [](Options& o, std::string_view v) {
       o.input_format = choice<InputFormat, 4>("input-format", v,
                                               {{{"auto", InputFormat::kAuto},
                                                 {"fasta", InputFormat::kFasta},
                                                 {"text", InputFormat::kText},
                                                 {"jsonl", InputFormat::kJsonl}}});
     }},
    {"protein", "PRESET", "auto", "how residues become tokens: auto (FASTA: by the vocabulary; "
     "text: none), prott5, prostt5-aa, prostt5-3di, ankh, none", kText, false, set_protein},
    {"rare-residues", "LETTERS", "UZOB", "residues that are read as X", kText, false,
     [](Options& o, std::string_view v) { o.protein.rare_residues = v; }},
    {"prefix", "TOKEN", "the preset's", "token before the residues: '<AA2fold>', '[NLU]'", kText,
     false, [](Options& o, std::string_view v) { o.protein.prefix = v; }},
    {"stop-as-x", "", "", "a '*' inside a protein is read as X instead of rejecting the record",
     kText, false, [](Options& o, std::string_view) { o.protein.stop_as_x = true; }},
    {"max-tokens", "N", "never cut", "cut longer records to N tokens, and report how many", kText,
     false,
     [](Options& o, std::string_view v) { o.max_tokens = integer("max-tokens", v, 1, 1 << 30); }},
    {"skip-empty", "", "", "empty records are named in the rejects, but are no failure", kJobs,
     false, [](Options& o, std::string_view) { o.skip_empty = true; }},
    {"on-duplicate", "WHAT", "reject", "an id that came before: reject, rename (id_2, id_3, ...) "
     "or first (keep the first, name the others in the rejects)", kJobs, false,
     [](Options& o, std::string_view v) {
       o.on_duplicate = choice<OnDuplicate, 3>("on-duplicate", v,
                                               {{{"reject", OnDuplicate::kReject},
                                                 {"rename", OnDuplicate::kRename},
                                                 {"first", OnDuplicate::kFirst}}});
     }},
    {"shard", "I/N", "1/1", "only the I-th of N parts of the input; quintet merge joins them",
     kJobs, false, set_shard},
    {"lengths", "LIST", "300", "token counts to plan for, where there is no --input", kPlan, false,
     set_lengths},

    {"generation-config", "FILE", "the model's", "JSON with options in the names of Hugging Face's "
     "generation config; on top of the model's own", kDecode, false,
     [](Options& o, std::string_view v) { o.generation_config = v; }},
    {"max-new-tokens", "N", "the model's", "tokens to generate at most", kDecode, false,
     set_generation<"max_new_tokens">},
    {"min-new-tokens", "N", "the model's", "no end of text before so many", kGenerate, false,
     set_generation<"min_new_tokens">},
    {"num-beams", "N", "the model's", "beams of beam search; 1 is none", kDecode, false,
     set_generation<"num_beams">},
    {"num-return-sequences", "N", "1", "results per record", kDecode, false,
     set_generation<"num_return_sequences">},
    {"do-sample", "", "", "draw tokens by their probability", kDecode, false,
     set_generation<"do_sample">},
    {"temperature", "T", "the model's", "of sampling", kGenerate, false,
     set_generation<"temperature">},
    {"top-k", "N", "the model's", "sampling: only the N likeliest; 0 is all", kGenerate, false,
     set_generation<"top_k">},
    {"top-p", "P", "the model's", "sampling: the likeliest that make up P", kGenerate, false,
     set_generation<"top_p">},
    {"repetition-penalty", "X", "the model's", "above 1: less of what was said", kGenerate, false,
     set_generation<"repetition_penalty">},
    {"no-repeat-ngram-size", "N", "the model's", "no N tokens twice in a row", kGenerate, false,
     set_generation<"no_repeat_ngram_size">},
    {"length-penalty", "X", "the model's", "beams: above 0 favours long ones", kGenerate, false,
     set_generation<"length_penalty">},
    {"early-stopping", "WHAT", "the model's", "beams: true, false or never", kGenerate, false,
     set_generation<"early_stopping">},
    {"seed", "N", "0", "of sampling: equal seeds draw equal tokens", kGenerate, false,
     set_generation<"seed">},
    {"batch-size", "N", "by the plan", "sequences (beams, samples) that make their steps together",
     kDecode, false,
     [](Options& o, std::string_view v) { o.batch_size = integer("batch-size", v, 1, 4096); }},
    {"skip-special-tokens", "", "", "leave </s> and the like out of the text", kGenerate, false,
     [](Options& o, std::string_view) { o.skip_special_tokens = true; }},
    {"stream", "", "", "print the text of one prompt as it comes", kGenerate, false,
     [](Options& o, std::string_view) { o.stream = true; }},
    {"add-bos", "", "", "put the model's bos token before each text, so that its first token is scored", kScore, false, [](Options& o, std::string_view) { o.add_bos = true; }},
    {"choices", "PIECES", "", "score these pieces against each other, such as '\u2581true,\u2581false'",
     kScore, false, [](Options& o, std::string_view v) { o.choices = v; }},
    {"logits", "FILE", "", "keep all logits of each record, as .safetensors", kScore, false,
     [](Options& o, std::string_view v) { o.logits = v; }},

    {"pool", "HOW", "none", "one vector per record: none (one per token or residue), mean, first, "
     "last", kEmbed | kPlan, false, set_pool},
    {"normalize", "", "", "divide pooled vectors by their length", kEmbed, false,
     [](Options& o, std::string_view) { o.normalize = true; }},
    {"masked-rows", "HOW", "zero", "rows of ids whose attention_mask is 0: zero or drop", kEmbed,
     false,
     [](Options& o, std::string_view v) {
       o.drop_masked_rows = choice<bool, 2>("masked-rows", v, {{{"zero", false}, {"drop", true}}});
     }},
    {"output-format", "FORMAT", "by the extension", "hdf5, npy, safetensors or jsonl", kEmbed,
     false,
     [](Options& o, std::string_view v) {
       o.output_format = choice<OutputFormat, 4>("output-format", v,
                                                 {{{"hdf5", OutputFormat::kHdf5},
                                                   {"npy", OutputFormat::kNpy},
                                                   {"safetensors", OutputFormat::kSafetensors},
                                                   {"jsonl", OutputFormat::kJsonl}}});
     }},
    {"layout", "LAYOUT", "prottrans", "of HDF5: prottrans (a dataset per id), bio-embeddings, "
     "tmbed, flat", kEmbed, false, set_layout},
    {"output-dtype", "TYPE", "float32", "numbers in the output: float32, float16, bfloat16; of the tmbed layout float16", kEmbed,
     false,
     [](Options& o, std::string_view v) { o.output_dtype = float_dtype("output-dtype", v); }},
    {"overwrite", "", "", "replace an output that is already there", kOut, false,
     [](Options& o, std::string_view) { o.overwrite = true; }},
    {"resume", "", "", "go on where an earlier run of the same job stopped; a plain start where "
     "there is nothing yet", kJobs, false,
     [](Options& o, std::string_view) { o.resume = true; }},

    {"stats", "FILE", "", "a JSON summary of the run", kJobs, false,
     [](Options& o, std::string_view v) { o.stats = v; }},
    {"trace", "FILE", "", "a timeline for Perfetto or chrome://tracing", kJobs, false,
     [](Options& o, std::string_view v) { o.trace = v; }},
    {"svg", "FILE", "", "draw the layout and its timeline", kPlan, false,
     [](Options& o, std::string_view v) { o.svg = v; }},
    {"json", "", "", "for programs", kPlan | kDevices | kInfo, false,
     [](Options& o, std::string_view) { o.json = true; }},
    {"quiet", "", "", "say nothing but errors", kJobs | kTokenize | kMerge, false,
     [](Options& o, std::string_view) { o.quiet = true; }},
    {"verbose", "", "", "also name tensors that are there and not used",
     kInfo, false,
     [](Options& o, std::string_view) { o.verbose = true; }},
});

}  // namespace

std::span<const OptionSpec> option_table() { return kTable; }

}  // namespace quintet
