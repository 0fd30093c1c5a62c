#include "models/stack_checks.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace quintet {

void check_stage_range(StageRange range, int64_t n_layers, std::string_view stack) {
  if (range.first_block >= 0 && range.first_block < range.last_block &&
      range.last_block <= n_layers) {
    return;
  }
  fail(ErrorKind::kUsage, "blocks {} .. {} asked for, the {} has 0 .. {}", range.first_block,
       range.last_block - 1, stack, n_layers - 1);
}

DType dtype_of_matrices(const Checkpoint& checkpoint,
                        const std::function<bool(const std::string& name)>& counts) {
  std::optional<DType> stored;
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (view.shape.size() != 2 || !counts(name)) continue;
    // Some files keep `wo` wider than the rest: only float32 holds all of them exactly.
    if (stored && *stored != view.dtype) return DType::kFloat32;
    stored = view.dtype;
  }
  return stored.value_or(DType::kFloat32);
}

std::vector<std::string> note_unused(const Checkpoint& checkpoint, const WeightScope::Names& used,
                                     const std::function<bool(const std::string& name)>& expected,
                                     std::string_view stack) {
  std::vector<std::string> unused;
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (!used.contains(name) && !expected(name)) unused.push_back(name);
  }
  if (unused.empty()) return {};
  constexpr size_t kShown = 3;
  const size_t n = unused.size();
  const bool cut = n > kShown;
  if (cut) unused.resize(kShown);
  return {fmt::format("{} tensor{} the {} does not use: {}{}", n, n == 1 ? "" : "s", stack,
                      fmt::join(unused, ", "), cut ? ", ..." : "")};
}

}  // namespace quintet
