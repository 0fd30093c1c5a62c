// A step of a decoder cut into row tiles. Cut and checked once for all blocks of a stage.
#ifndef QUINTET_OPS_STEP_TILES_H_
#define QUINTET_OPS_STEP_TILES_H_

#include <cstdint>
#include <vector>

#include "core/micro_batch.h"
#include "core/step_batch.h"

namespace quintet::ops {

// Rows [first_row, first_row + n_rows) of a step; those of prompts come first.
struct StepTile {
  int64_t first_row = 0;
  int64_t n_rows = 0;
  int64_t n_prompt_rows = 0;
  PageTable self;   // of the rows behind the prompts'
  PageTable cross;  // of all rows; without tables where the step has none
};

struct StepTiles {
  std::vector<StepTile> tiles;
  int64_t max_len = 1;  // 1 + the largest distance of a row to a key of its own sequence
  bool keeps = false;   // some row's keys and values go to the self cache
};

// `prompts` are the step's, or the same with other positions. crosses: every row attends to an
// encoder's output. Throws Error(kUsage) where lengths do not match.
StepTiles cut_step(const StepBatch& step, const MicroBatch& prompts, bool crosses);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_STEP_TILES_H_
