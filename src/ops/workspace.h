// The work buffers of one stage, kept from block to block and from batch to batch: a batch no
// larger than those before it allocates nothing. Parts of a batch that are worked on side by side
// have a share each. Also says what they will come to.
#ifndef QUINTET_OPS_WORKSPACE_H_
#define QUINTET_OPS_WORKSPACE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backends/device.h"
#include "core/tensor.h"

namespace quintet::ops {

// Of a long sequence only the hidden states, K and V stand whole; the rest passes in tiles of this
// many rows. Every op treats its rows apart, so the number changes speed and memory, not one bit.
inline constexpr int64_t kTileRows = 512;

class Workspace {
 public:
  enum class Slot { kNorm, kQuery, kContext, kKeyValue, kActivation, kCount };

  explicit Workspace(Device& device) : device_(&device), slots_(std::make_shared<Slots>()) {}

  // The share of rows [first_row, first_row + n_rows) of a batch of n_tokens: the same memory, and
  // no row in common with the shares of other rows. All shares together are as large as the batch.
  Workspace share(int64_t first_row, int64_t n_rows, int64_t n_tokens) const;

  Device& device() const { return *device_; }
  // The most rows that pass at once through slots other than kKeyValue, of n_tokens in all.
  int64_t tile_rows(int64_t n_tokens) const;

  // [rows, cols] float32 with undefined contents, valid until the same slot is asked for again.
  // A slot keeps the most rows it was asked for.
  Tensor get(Slot slot, int64_t rows, int64_t cols);

 private:
  struct Slots {
    std::mutex mutex;
    std::array<Tensor, static_cast<size_t>(Slot::kCount)> tensors;
  };
  struct Share {
    int64_t first = 0;
    int64_t count = 0;
    int64_t of = 0;  // rows in all; 0: this is not a share
  };

  Device* device_;
  std::shared_ptr<Slots> slots_;
  Share tokens_;  // in kKeyValue
  Share tile_;    // in the other slots
};

// Bytes of activations while blocks of this shape run on a batch, hidden states included, the rows
// as far apart as a CPU device lays them (others need a little less):
// per_token * n_tokens + per_tile_row * min(n_tokens, kTileRows).
struct ActivationBytes {
  int64_t per_token = 0;
  int64_t per_tile_row = 0;

  int64_t of(int64_t n_tokens) const;
};

// inner: n_heads * d_kv. Holds for self_attention_add and feed_forward_add over one Workspace.
ActivationBytes activation_bytes(int64_t d_model, int64_t inner, int64_t d_ff);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_WORKSPACE_H_
