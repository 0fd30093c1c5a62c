#include "ops/step_tiles.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "ops/checks.h"
#include "ops/workspace.h"

namespace quintet::ops {
namespace {

constexpr auto kName = "step";

void check_size(std::string_view what, size_t found, int64_t expected) {
  if (static_cast<int64_t>(found) == expected) return;
  fail(ErrorKind::kUsage, "{}: {} {}, expected {}", kName, found, what, expected);
}

void check_tables(std::string_view what, const PageTable& tables, int64_t n_rows) {
  check_size(fmt::format("tables of {} rows", what), tables.table.size(), n_rows);
  check_size(fmt::format("key counts of {} rows", what), tables.n_keys.size(), n_rows);
}

// Rows [first, first + count) of `all`.
PageTable cut(const PageTable& all, int64_t first, int64_t count) {
  if (count == 0) return {};
  const auto part = [&](const std::vector<int32_t>& rows) {
    return std::vector<int32_t>(rows.begin() + first, rows.begin() + first + count);
  };
  return {
      .pages = all.pages, .begin = all.begin, .table = part(all.table), .n_keys = part(all.n_keys)};
}

}  // namespace

StepTiles cut_step(const StepBatch& step, const MicroBatch& prompts, bool crosses) {
  if (prompts.n_tokens() > 0) check_batch(kName, prompts);
  check_size("prompt rows", prompts.tokens.size(), step.prompts.n_tokens());
  check_size("positions", step.positions.size(), step.n_steps());
  if (!step.slots.empty()) check_size("slots", step.slots.size(), step.n_rows());
  check_tables("self", step.self, step.n_steps());
  if (crosses) check_tables("cross", step.cross, step.n_rows());

  StepTiles cuts;
  const int64_t n_prompt_rows = prompts.n_tokens();
  for (int64_t row = 0; row < step.n_rows(); row += kTileRows) {
    StepTile tile;
    tile.first_row = row;
    tile.n_rows = std::min(kTileRows, step.n_rows() - row);
    tile.n_prompt_rows = std::clamp<int64_t>(n_prompt_rows - row, 0, tile.n_rows);
    tile.self =
        cut(step.self, row + tile.n_prompt_rows - n_prompt_rows, tile.n_rows - tile.n_prompt_rows);
    if (crosses) tile.cross = cut(step.cross, row, tile.n_rows);
    cuts.tiles.push_back(std::move(tile));
  }
  cuts.max_len = std::max(prompts.max_len, 1);
  for (const int32_t n_keys : step.self.n_keys)
    cuts.max_len = std::max<int64_t>(cuts.max_len, n_keys);
  cuts.keeps =
      std::any_of(step.slots.begin(), step.slots.end(), [](int32_t slot) { return slot != -1; });
  return cuts;
}

}  // namespace quintet::ops
