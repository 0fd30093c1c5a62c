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

// The tensors of an encoder of this config, under the names of an encoder-only checkpoint.
inline void add_encoder(FakeCheckpoint& checkpoint, const T5Config& c,
                        DType dtype = DType::kFloat32) {
  checkpoint.add_random("shared.weight", {c.vocab_size, c.d_model}, dtype);
  for (int64_t block = 0; block < c.n_layers; ++block) {
    const std::string name = "encoder.block." + std::to_string(block);
    const std::string attention = name + ".layer.0.SelfAttention.";
    for (const char* part : {"q", "k", "v"}) {
      checkpoint.add_random(attention + part + ".weight", {c.inner(), c.d_model}, dtype);
    }
    checkpoint.add_random(attention + "o.weight", {c.d_model, c.inner()}, dtype);
    if (block == 0 || c.bias_per_block) {
      checkpoint.add_random(attention + "relative_attention_bias.weight",
                            {c.relative_buckets, c.n_heads}, dtype);
    }
    const std::vector<float> ones(static_cast<size_t>(c.d_model), 1);
    checkpoint.add(name + ".layer.0.layer_norm.weight", {c.d_model}, ones, dtype);
    checkpoint.add(name + ".layer.1.layer_norm.weight", {c.d_model}, ones, dtype);
    const std::string dense = name + ".layer.1.DenseReluDense.";
    checkpoint.add_random(dense + (c.gated ? "wi_0" : "wi") + ".weight", {c.d_ff, c.d_model},
                          dtype);
    if (c.gated) checkpoint.add_random(dense + "wi_1.weight", {c.d_ff, c.d_model}, dtype);
    checkpoint.add_random(dense + "wo.weight", {c.d_model, c.d_ff}, dtype);
  }
  checkpoint.add("encoder.final_layer_norm.weight", {c.d_model},
                 std::vector<float>(static_cast<size_t>(c.d_model), 1), dtype);
}

}  // namespace quintet

#endif  // QUINTET_MODELS_FAKE_CHECKPOINT_H_
