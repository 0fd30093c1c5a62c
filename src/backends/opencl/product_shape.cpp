#include "backends/opencl/product_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>

namespace quintet::opencl {

namespace {

constexpr int64_t kDepth = 256;      // steps of k whose part of a panel stays in the nearest cache
constexpr int64_t kBlockRows = 528;  // rows of a group, at most
constexpr int64_t kLeastTiles = 3;   // of a group, where its rows are cut to have more groups
constexpr int64_t kWorthTiles = 8;   // tiles that make reading a panel worth while
constexpr int64_t kPanels = 4;       // of a group, at most
constexpr int64_t kWidenTiles = 4;   // from here on 16-bit weights are widened once for all tiles
// Groups wanted per unit, where there are several: drivers hand them out many at a time.
constexpr int64_t kGroupsPerUnit = 32;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of a tile, of those that have a kernel: a step of k takes about as long as it has rows, few
// wait for each other's results, and a step has costs of its own.
int rows_of_tile(int64_t rows, int lanes) {
  static constexpr int kWide[] = {1, 2, 4, 8, 12};
  static constexpr int kNarrow[] = {1, 2, 4, 6};
  const std::span<const int> sizes = lanes >= 16 ? std::span<const int>(kWide) : kNarrow;
  int best = 0;
  int64_t least = 0;
  for (const int size : sizes) {
    const int64_t cost = divide_up(rows, size) * (std::max(size, 4) + 1);
    if (best != 0 && cost >= least) continue;
    best = size;
    least = cost;
    if (size >= rows) break;
  }
  return best;
}

}  // namespace

PanelShape panel_shape(const Limits& limits) {
  const auto lanes = static_cast<int>(limits.float_lanes);
  bool wide = limits.local_is_cache && (lanes == 4 || lanes == 8 || lanes == 16);
  if (const char* wish = std::getenv("QUINTET_OPENCL_PRODUCTS")) {
    wide = std::string_view(wish) == "wide" || (wide && std::string_view(wish) != "tiled");
  }
  if (!wide) return {.lanes = 0, .width = 64};
  const int used = lanes >= 16 ? 16 : lanes >= 8 ? 8 : 4;
  return {.lanes = used, .width = 2 * used};
}

std::string WideTiles::defines() const {
  return fmt::format("-D ROWS={} -D SUM_ROWS={} -D WIDEN_DEPTH={}", rows, sum_rows, widen_depth);
}

// "Local" memory of such a device is main memory; its size tells what the nearer caches hold. Half
// of it is for what a group keeps there, a quarter each for sums and widened weights; the rows of x
// that the groups of a block read again and again may take the other half.
WideTiles wide_tiles(const ProductSize& size, const PanelShape& panels, const Limits& limits) {
  WideTiles tiles;
  tiles.rows = rows_of_tile(size.rows, panels.lanes);
  const auto near_bytes = static_cast<int64_t>(limits.local_bytes) / 2;
  const auto row_bytes = static_cast<int64_t>(panels.width * sizeof(float));
  const int64_t room = std::max<int64_t>(near_bytes / 2 / row_bytes, 12) / tiles.rows * tiles.rows;
  const int64_t most_depth = std::min(kDepth, room);
  tiles.sum_rows =
      static_cast<int>(std::min(kBlockRows * kPanels / 2 / tiles.rows * tiles.rows, room));
  tiles.block_panels = 1;
  if (size.rows <= tiles.rows) {
    tiles.block_rows = tiles.rows;
    tiles.depth = static_cast<int>(std::max<int64_t>(1, size.d_in));
    return tiles;
  }
  const int64_t n_depths = std::max<int64_t>(1, divide_up(size.d_in, most_depth));
  tiles.depth = static_cast<int>(std::max<int64_t>(1, divide_up(size.d_in, n_depths)));

  // Rows that stay near while panel after panel is multiplied; where those are too few to be worth
  // a panel's reading, more, which then meet several panels in each part of the depth.
  const int64_t near_rows =
      near_bytes / static_cast<int64_t>(sizeof(float)) / std::max<int64_t>(1, size.d_in);
  const int64_t worth = kWorthTiles * tiles.rows;
  const int64_t most_rows = std::min({near_rows >= worth ? near_rows : kBlockRows / 2, kBlockRows,
                                      static_cast<int64_t>(tiles.sum_rows)});
  const int64_t wanted = limits.units > 1 ? kGroupsPerUnit * limits.units : 1;
  const int64_t least_blocks = divide_up(size.rows, std::max<int64_t>(most_rows, tiles.rows));
  const int64_t most_blocks = std::max(least_blocks, size.rows / (kLeastTiles * tiles.rows));
  const int64_t blocks = std::clamp(divide_up(wanted, size.n_panels), least_blocks, most_blocks);
  const int64_t tiles_of_block = divide_up(divide_up(size.rows, blocks), tiles.rows);
  tiles.block_rows =
      static_cast<int>(std::min<int64_t>(tiles_of_block * tiles.rows, tiles.sum_rows));
  const int64_t most_panels = std::min<int64_t>(kPanels, tiles.sum_rows / tiles.block_rows);
  tiles.block_panels =
      static_cast<int>(std::clamp<int64_t>(size.n_panels * blocks / wanted, 1, most_panels));
  if (size.narrow && tiles_of_block >= kWidenTiles) {
    tiles.widen_depth = static_cast<int>(most_depth);
  }
  return tiles;
}

std::string GroupTiles::defines() const {
  return fmt::format("-D PANELS={} -D GROUP_COLS={} -D GROUP_ROWS={} -D TILE_ROWS={} -D DEPTH={}",
                     panels, group_cols, group_rows, tile_rows, depth);
}

GroupTiles group_tiles(const ProductSize& size, const PanelShape& panels, const Limits& limits) {
  const int half = panels.width / 2;
  const auto most = static_cast<int>(std::min<size_t>(limits.work_group, 256));
  const auto local_floats = static_cast<int>(std::min<size_t>(limits.local_bytes / 4, 12288));
  if (size.rows <= 16 || most < 64) {
    int cols = half;
    while (cols > most) cols /= 2;
    int rows = 1;
    while (rows < size.rows && rows < 8) rows *= 2;
    int depth = 64;
    while (depth > 1 && depth * (rows + 1) > local_floats) depth /= 2;
    return {.panels = 1, .group_cols = cols, .group_rows = 1, .tile_rows = rows, .depth = depth};
  }
  // 16 x 16 work-items, or 8 x 8, with four rows each and two pairs of columns; with twice as much
  // of both where that leaves enough groups.
  GroupTiles tiles{.panels = 1,
                   .group_cols = most >= 256 ? 16 : 8,
                   .group_rows = most >= 256 ? 16 : 8,
                   .tile_rows = most >= 256 ? 4 : 8,
                   .depth = 16};
  const int64_t groups = divide_up(size.rows, 128) * divide_up(size.n_panels, 2);
  if (most >= 256 && groups >= 2 * static_cast<int64_t>(limits.units)) {
    tiles.tile_rows = 8;
    tiles.panels = 2;
  }
  while (tiles.depth > 1 &&
         tiles.depth * (tiles.group_rows * tiles.tile_rows + 1 + tiles.panels * panels.width) >
             local_floats) {
    tiles.depth /= 2;
  }
  return tiles;
}

}  // namespace quintet::opencl
