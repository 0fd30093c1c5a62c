#include "conformance/checkpoint_maker.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"

namespace quintet::conformance {
namespace {

using nlohmann::json;

// Sizes that divide by no vector width, so that the ends of rows are reached; the two stacks of a
// model differ in depth where they may.
constexpr int64_t kVocabSize = 101;
constexpr int64_t kDModel = 54;
constexpr int64_t kDFf = 90;
constexpr int64_t kHeads = 3;
constexpr int64_t kDKv = 20;  // T5: heads * d_kv is not d_model
constexpr int64_t kBuckets = 8;
constexpr int64_t kPositions = 160;

// Numbers like a normal distribution's, by exact operations alone: a sum of 12 uniform ones.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : random_(seed) {}
  float normal(double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_() >> 11) * 0x1p-53;
    return static_cast<float>(sum * deviation);
  }

 private:
  std::mt19937_64 random_;
};

// A safetensors file in the making.
class TensorWriter {
 public:
  explicit TensorWriter(uint64_t seed) : numbers_(seed) {}

  void random(const std::string& name, const std::vector<int64_t>& shape, double deviation,
              double mean = 0) {
    const size_t begin = values_.size();
    size_t n = 1;
    for (const int64_t size : shape) n *= static_cast<size_t>(size);
    for (size_t i = 0; i < n; ++i) {
      values_.push_back(numbers_.normal(deviation) + static_cast<float>(mean));
    }
    header_[name] = {{"dtype", "F32"},
                     {"shape", shape},
                     {"data_offsets", {begin * sizeof(float), values_.size() * sizeof(float)}}};
  }
  size_t bytes() const { return values_.size() * sizeof(float); }

  void write(const std::filesystem::path& path) const {
    static_assert(std::endian::native == std::endian::little);
    std::string header = header_.dump();
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t size = header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), sizeof(size));
    file << header;
    file.write(reinterpret_cast<const char*>(values_.data()),
               static_cast<std::streamsize>(bytes()));
    file.close();
    if (!file) fail(ErrorKind::kIo, "{}: cannot be written; is the disk full?", path.string());
  }

 private:
  Numbers numbers_;
  json header_ = {{"__metadata__", {{"format", "pt"}}}};
  std::vector<float> values_;
};

double per_root(int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

struct T5Shape {
  const char* model_type;
  uint64_t seed;
  int64_t n_layers;
  int64_t n_decoder_layers;
  const char* feed_forward_proj;
  bool gated;
  bool bias_per_block;
  bool tied;  // the head is the embedding
};

T5Shape t5_shape(Family family) {
  switch (family) {
    case Family::kMt5:
      return {"mt5", 12, 5, 5, "gated-gelu", true, false, false};
    case Family::kUmt5:
      return {"umt5", 13, 4, 5, "gated-gelu", true, true, false};
    default:
      return {"t5", 11, 6, 4, "relu", false, false, true};
  }
}

// Scales near those with which the original initialises T5: queries are small, as scores are not
// scaled, yet such that a row attends to some keys more than to others; so does the bias by
// distance.
void add_t5_attention(TensorWriter& tensors, const std::string& name) {
  constexpr int64_t kInner = kHeads * kDKv;
  tensors.random(name + "q.weight", {kInner, kDModel}, 3 * per_root(kDModel) * per_root(kDKv));
  tensors.random(name + "k.weight", {kInner, kDModel}, per_root(kDModel));
  tensors.random(name + "v.weight", {kInner, kDModel}, per_root(kDModel));
  tensors.random(name + "o.weight", {kDModel, kInner}, per_root(kInner));
}

void add_t5_stack(TensorWriter& tensors, const T5Shape& shape, const std::string& stack,
                  int64_t n_layers) {
  const bool crosses = stack == "decoder.";
  for (int64_t block = 0; block < n_layers; ++block) {
    const std::string name = fmt::format("{}block.{}.layer.", stack, block);
    int layer = 0;
    const auto next = [&] {
      std::string prefix = fmt::format("{}{}.", name, layer++);
      tensors.random(prefix + "layer_norm.weight", {kDModel}, 0.1, 1);
      return prefix;
    };
    const std::string attention = next() + "SelfAttention.";
    add_t5_attention(tensors, attention);
    if (block == 0 || shape.bias_per_block) {
      tensors.random(attention + "relative_attention_bias.weight", {kBuckets, kHeads}, 0.7);
    }
    if (crosses) add_t5_attention(tensors, next() + "EncDecAttention.");
    const std::string dense = next() + "DenseReluDense.";
    for (const char* part : {"wi", "wi_0", "wi_1"}) {
      if ((part == std::string("wi")) == shape.gated) continue;
      tensors.random(fmt::format("{}{}.weight", dense, part), {kDFf, kDModel}, per_root(kDModel));
    }
    tensors.random(dense + "wo.weight", {kDModel, kDFf}, per_root(kDFf));
  }
}

// The embedding is small beside what the blocks add, and so a tied head does not repeat the last
// token for ever.
constexpr double kEmbedding = 0.25;

MadeCheckpoint write_t5(Family family, const std::filesystem::path& folder) {
  const T5Shape shape = t5_shape(family);
  const json config = {{"model_type", shape.model_type},
                       {"vocab_size", kVocabSize},
                       {"d_model", kDModel},
                       {"d_kv", kDKv},
                       {"d_ff", kDFf},
                       {"num_heads", kHeads},
                       {"num_layers", shape.n_layers},
                       {"num_decoder_layers", shape.n_decoder_layers},
                       {"relative_attention_num_buckets", kBuckets},
                       {"relative_attention_max_distance", 24},
                       {"feed_forward_proj", shape.feed_forward_proj},
                       {"tie_word_embeddings", shape.tied},
                       {"decoder_start_token_id", 0},
                       {"eos_token_id", 1},
                       {"pad_token_id", 0}};
  TensorWriter tensors(shape.seed);
  MadeCheckpoint made{.n_encoder_layers = shape.n_layers,
                      .n_decoder_layers = shape.n_decoder_layers};
  tensors.random("shared.weight", {kVocabSize, kDModel}, kEmbedding);
  if (!shape.tied) tensors.random("lm_head.weight", {kVocabSize, kDModel}, 2 * per_root(kDModel));
  const size_t first = tensors.bytes();
  add_t5_stack(tensors, shape, "encoder.", shape.n_layers);
  made.encoder_bytes = tensors.bytes() - first;
  add_t5_stack(tensors, shape, "decoder.", shape.n_decoder_layers);
  made.decoder_bytes = tensors.bytes() - first - made.encoder_bytes;
  tensors.random("encoder.final_layer_norm.weight", {kDModel}, 0.1, 1);
  tensors.random("decoder.final_layer_norm.weight", {kDModel}, 0.1, 1);
  tensors.write(folder / "model.safetensors");
  std::ofstream(folder / "config.json") << config.dump(1) << "\n";
  std::ofstream(folder / "generation_config.json")
      << R"({"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0})"
      << "\n";
  return made;
}

MadeCheckpoint write_gpt2(const std::filesystem::path& folder) {
  constexpr int64_t kBlocks = 5;
  const json config = {{"model_type", "gpt2"},      {"vocab_size", kVocabSize},
                       {"n_positions", kPositions}, {"n_embd", kDModel},
                       {"n_layer", kBlocks},        {"n_head", kHeads},
                       {"n_inner", kDFf},           {"activation_function", "gelu_new"},
                       {"bos_token_id", 0},         {"eos_token_id", 1}};
  TensorWriter tensors(10);
  const auto linear = [&](const std::string& name, int64_t d_in, int64_t d_out) {
    tensors.random(name + ".weight", {d_in, d_out}, per_root(d_in));
    tensors.random(name + ".bias", {d_out}, 0.1);
  };
  const auto norm = [&](const std::string& name) {
    tensors.random(name + ".weight", {kDModel}, 0.1, 1);
    tensors.random(name + ".bias", {kDModel}, 0.1);
  };
  tensors.random("wte.weight", {kVocabSize, kDModel}, kEmbedding);
  tensors.random("wpe.weight", {kPositions, kDModel}, kEmbedding);
  const size_t first = tensors.bytes();
  for (int64_t block = 0; block < kBlocks; ++block) {
    const std::string name = fmt::format("h.{}.", block);
    norm(name + "ln_1");
    linear(name + "attn.c_attn", kDModel, 3 * kDModel);
    linear(name + "attn.c_proj", kDModel, kDModel);
    norm(name + "ln_2");
    linear(name + "mlp.c_fc", kDModel, kDFf);
    linear(name + "mlp.c_proj", kDFf, kDModel);
  }
  MadeCheckpoint made{.n_decoder_layers = kBlocks, .decoder_bytes = tensors.bytes() - first};
  norm("ln_f");
  tensors.write(folder / "model.safetensors");
  std::ofstream(folder / "config.json") << config.dump(1) << "\n";
  std::ofstream(folder / "generation_config.json")
      << R"({"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1})"
      << "\n";
  return made;
}

}  // namespace

std::string_view family_name(Family family) {
  switch (family) {
    case Family::kGpt2:
      return "GPT2";
    case Family::kT5:
      return "T5";
    case Family::kMt5:
      return "MT5";
    case Family::kUmt5:
      return "UMT5";
  }
  return "";
}

MadeCheckpoint make_checkpoint(Family family, const std::filesystem::path& parent) {
  const std::filesystem::path folder = parent / family_name(family);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorKind::kIo, "{}: {}", folder.string(), error.message());
  MadeCheckpoint made = family == Family::kGpt2 ? write_gpt2(folder) : write_t5(family, folder);
  made.folder = folder;
  made.vocab_size = kVocabSize;
  return made;
}

}  // namespace quintet::conformance
