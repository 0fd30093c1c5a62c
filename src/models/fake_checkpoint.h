// A checkpoint made up in memory, for tests.
#ifndef QUINTET_MODELS_FAKE_CHECKPOINT_H_
#define QUINTET_MODELS_FAKE_CHECKPOINT_H_

#include <cmath>
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/gpt2_config.h"
#include "models/t5_config.h"
#include "weights/checkpoint.h"

namespace quintet {

class FakeCheckpoint : public Checkpoint {
 public:
  FakeCheckpoint() {
    folder_ = "fake";
    format_ = "memory";
  }

  void add(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values,
           DType dtype = DType::kFloat32) {
    auto& bytes = bytes_.emplace_back(values.size() * size_of(dtype));
    narrow(values.data(), values.size(), dtype, bytes.data());
    tensors_[name] = {
        .name = name, .data = bytes.data(), .dtype = dtype, .shape = std::move(shape)};
  }
  // Random numbers of a size that keeps hidden states near 1.
  void add_random(const std::string& name, std::vector<int64_t> shape,
                  DType dtype = DType::kFloat32) {
    size_t n = 1;
    for (const int64_t size : shape) n *= static_cast<size_t>(size);
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(shape.back())));
    std::vector<float> values(n);
    for (float& value : values) value = normal(random_);
    add(name, std::move(shape), values, dtype);
  }
  void remove(const std::string& name) { tensors_.erase(name); }
  void promise(const std::string& name, const std::string& shard) { missing_[name] = shard; }
  void rename(const std::string& from, const std::string& to) {
    auto node = tensors_.extract(from);
    node.key() = to;
    tensors_.insert(std::move(node));
  }
  // Puts `prefix` before every name.
  void prepend(const std::string& prefix) {
    auto old = std::exchange(tensors_, {});
    for (auto& [name, view] : old) tensors_[prefix + name] = view;
  }

 private:
  std::list<std::vector<std::byte>> bytes_;
  std::mt19937 random_{7};
};

inline void add_ones(FakeCheckpoint& checkpoint, const std::string& name, int64_t n, DType dtype) {
  checkpoint.add(name, {n}, std::vector<float>(static_cast<size_t>(n), 1), dtype);
}

// q, k, v and o of one attention of a T5 block: "encoder.block.0.layer.0.SelfAttention."
inline void add_t5_attention(FakeCheckpoint& checkpoint, const T5Config& c, const std::string& name,
                             DType dtype) {
  for (const char* part : {"q", "k", "v"}) {
    checkpoint.add_random(name + part + ".weight", {c.inner(), c.d_model}, dtype);
  }
  checkpoint.add_random(name + "o.weight", {c.d_model, c.inner()}, dtype);
}

// The blocks of one stack and its final norm; a decoder's attend to the encoder besides.
inline void add_t5_stack(FakeCheckpoint& checkpoint, const T5Config& c, const std::string& stack,
                         int64_t n_layers, DType dtype) {
  const bool crosses = stack == "decoder.";
  for (int64_t block = 0; block < n_layers; ++block) {
    const std::string name = stack + "block." + std::to_string(block) + ".layer.";
    const std::string attention = name + "0.SelfAttention.";
    add_t5_attention(checkpoint, c, attention, dtype);
    if (block == 0 || c.bias_per_block) {
      checkpoint.add_random(attention + "relative_attention_bias.weight",
                            {c.relative_buckets, c.n_heads}, dtype);
    }
    if (crosses) add_t5_attention(checkpoint, c, name + "1.EncDecAttention.", dtype);
    const std::string last = crosses ? "2." : "1.";
    for (const std::string layer : {"0.", "1.", "2."}) {
      if (layer <= last) add_ones(checkpoint, name + layer + "layer_norm.weight", c.d_model, dtype);
    }
    const std::string dense = name + last + "DenseReluDense.";
    checkpoint.add_random(dense + (c.gated ? "wi_0" : "wi") + ".weight", {c.d_ff, c.d_model},
                          dtype);
    if (c.gated) checkpoint.add_random(dense + "wi_1.weight", {c.d_ff, c.d_model}, dtype);
    checkpoint.add_random(dense + "wo.weight", {c.d_model, c.d_ff}, dtype);
  }
  add_ones(checkpoint, stack + "final_layer_norm.weight", c.d_model, dtype);
}

// The tensors of an encoder of this config, under the names of an encoder-only checkpoint.
inline void add_encoder(FakeCheckpoint& checkpoint, const T5Config& c,
                        DType dtype = DType::kFloat32) {
  checkpoint.add_random("shared.weight", {c.vocab_size, c.d_model}, dtype);
  add_t5_stack(checkpoint, c, "encoder.", c.n_layers, dtype);
}

// A decoder's, as a full checkpoint with tied embeddings names them.
inline void add_decoder(FakeCheckpoint& checkpoint, const T5Config& c,
                        DType dtype = DType::kFloat32) {
  checkpoint.add_random("shared.weight", {c.vocab_size, c.d_model}, dtype);
  add_t5_stack(checkpoint, c, "decoder.", c.n_decoder_layers, dtype);
}

// GPT-2's, as saved without a head.
inline void add_gpt2(FakeCheckpoint& checkpoint, const Gpt2Config& c,
                     DType dtype = DType::kFloat32) {
  const auto vector = [&](const std::string& name, int64_t n) {
    checkpoint.add_random(name, {n}, dtype);
  };
  const auto norm = [&](const std::string& name) {
    add_ones(checkpoint, name + ".weight", c.d_model, dtype);
    vector(name + ".bias", c.d_model);
  };
  checkpoint.add_random("wte.weight", {c.vocab_size, c.d_model}, dtype);
  checkpoint.add_random("wpe.weight", {c.n_positions, c.d_model}, dtype);
  for (int64_t block = 0; block < c.n_layers; ++block) {
    const std::string name = "h." + std::to_string(block) + ".";
    norm(name + "ln_1");
    norm(name + "ln_2");
    checkpoint.add_random(name + "attn.c_attn.weight", {c.d_model, 3 * c.d_model}, dtype);
    vector(name + "attn.c_attn.bias", 3 * c.d_model);
    checkpoint.add_random(name + "attn.c_proj.weight", {c.d_model, c.d_model}, dtype);
    vector(name + "attn.c_proj.bias", c.d_model);
    checkpoint.add_random(name + "mlp.c_fc.weight", {c.d_model, c.d_ff}, dtype);
    vector(name + "mlp.c_fc.bias", c.d_ff);
    checkpoint.add_random(name + "mlp.c_proj.weight", {c.d_ff, c.d_model}, dtype);
    vector(name + "mlp.c_proj.bias", c.d_model);
  }
  norm("ln_f");
}

}  // namespace quintet

#endif  // QUINTET_MODELS_FAKE_CHECKPOINT_H_
