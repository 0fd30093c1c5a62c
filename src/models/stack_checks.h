// What every stack of a model checks of a checkpoint and of what it is asked for.
#ifndef QUINTET_MODELS_STACK_CHECKS_H_
#define QUINTET_MODELS_STACK_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "models/encoder.h"
#include "models/weight_scope.h"
#include "weights/checkpoint.h"

namespace quintet {

// Throws Error(kUsage) where [first, last) are not some of a stack's blocks. stack: "encoder".
void check_stage_range(StageRange range, int64_t n_layers, std::string_view stack);

// The dtype of the matrices that `counts` is true of; float32 where they are not all of one.
DType dtype_of_matrices(const Checkpoint& checkpoint,
                        const std::function<bool(const std::string& name)>& counts);

// A note where the checkpoint holds tensors that are neither in `used` nor `expected`, or none.
std::vector<std::string> note_unused(const Checkpoint& checkpoint, const WeightScope::Names& used,
                                     const std::function<bool(const std::string& name)>& expected,
                                     std::string_view stack);

}  // namespace quintet

#endif  // QUINTET_MODELS_STACK_CHECKS_H_
