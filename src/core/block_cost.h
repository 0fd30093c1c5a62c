// What one block of a stack costs: the model states it, placement lays out with it. Exact counts,
// not estimates; flops are multiply-adds times two. A token is a row that passes the block: of a
// micro-batch, a prompt, or a step.
#ifndef QUINTET_CORE_BLOCK_COST_H_
#define QUINTET_CORE_BLOCK_COST_H_

#include <cstdint>
#include <vector>

namespace quintet {

struct BlockCost {
  int64_t weight_bytes = 0;    // as packed on the device, in the dtype asked for
  int64_t weight_params = 0;   // of its matrices; a device streams these per micro-batch
  double flops_per_token = 0;  // matrix products
  double attention_flops_per_token_key = 0;  // per token and per key it attends to, self or cross
  double activation_bytes_per_max_len = 0;   // a position bias of its own (uMT5), see StackCost
  // Keys and values of kPageTokens tokens (core/step_batch.h), of the self cache and of the cross
  // cache alike, as the cache keeps them; 0: no cache.
  int64_t cache_bytes_per_page = 0;
  // Cross-attention's products for keys and values see each row of the encoder's output once, not
  // the decoder's tokens: not in flops_per_token.
  double flops_per_source_token = 0;
  int64_t source_weight_bytes = 0;  // of weight_bytes, those that only these products read
};

// One stack (encoder, decoder) as placement sees it.
struct StackCost {
  std::vector<BlockCost> blocks;  // [n_layers]
  int64_t first_bytes = 0;        // weights that go with block 0: the embedding table, positions
  int64_t last_bytes = 0;         // weights that go with the last block: the final norm, the head
  // Counted in first_bytes and in last_bytes, and held once where one stage has both ends: a tied
  // head's table.
  int64_t shared_bytes = 0;
  int64_t last_params = 0;          // of the head's matrix [vocab_size, d_model]; 0: no head
  double last_flops_per_token = 0;  // of the head, for each row whose logits are wanted
  int64_t per_stage_bytes = 0;      // weights that every stage keeps a copy of: T5's shared bias
  int64_t d_model = 0;

  // Bytes of activations on one device while a micro-batch of n_tokens passes, its own hidden
  // states included, the longest sequence being max_len:
  //   a * n_tokens + b * min(n_tokens, tile_rows) + c * max_len,
  // c being the stack's plus that of each block of the stage. Work buffers stay with the stage, so
  // this is that of the largest micro-batch so far.
  double activation_bytes_per_token = 0;
  double activation_bytes_per_tile_row = 0;
  double activation_bytes_per_max_len = 0;
  int64_t tile_rows = 0;
};

}  // namespace quintet

#endif  // QUINTET_CORE_BLOCK_COST_H_
