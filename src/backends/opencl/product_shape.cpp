#include "backends/opencl/product_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace quintet::opencl {

namespace {

constexpr int64_t kDepth = 256;      // steps of k whose part of a panel stays in the nearest cache
constexpr int64_t kBlockRows = 512;  // rows of a group, at most: their part of x stays in the next
constexpr int64_t kWidenTiles = 4;   // from here on 16-bit weights are widened once for all tiles
constexpr int64_t kGroupsPerUnit = 16;  // wanted, so that no unit waits long for the last

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of a tile, of those that have a kernel: the fewest tiles, and of equal ones the smaller.
int rows_of_tile(int64_t rows, int lanes) {
  static constexpr int kSizes[] = {1, 2, 4, 6, 8, 10, 12};
  const int most = lanes >= 16 ? 12 : 6;
  int best = 1;
  for (const int size : kSizes) {
    if (size > most) break;
    if (divide_up(rows, size) < divide_up(rows, best)) best = size;
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

WideTiles wide_tiles(const ProductSize& size, const PanelShape& panels, const Limits& limits) {
  WideTiles tiles;
  tiles.rows = rows_of_tile(size.rows, panels.lanes);
  tiles.block_panels = 1;
  if (size.rows <= tiles.rows) {
    tiles.block_rows = tiles.sum_rows = tiles.rows;
    tiles.depth = static_cast<int>(std::max<int64_t>(1, size.d_in));
    return tiles;
  }
  const auto row_bytes = static_cast<int64_t>(panels.width * sizeof(float));
  const auto room = std::max<int64_t>(static_cast<int64_t>(limits.local_bytes) / 2 / row_bytes,
                                      2 * tiles.rows);  // rows of floats, of sums or of a panel
  const int64_t n_depths = std::max<int64_t>(1, divide_up(size.d_in, std::min(kDepth, room / 2)));
  tiles.depth = static_cast<int>(std::max<int64_t>(1, divide_up(size.d_in, n_depths)));

  const int64_t most = std::min(kBlockRows, room / 2) / tiles.rows * tiles.rows;
  const int64_t wanted = kGroupsPerUnit * limits.units;
  int64_t blocks = divide_up(size.rows, most);
  blocks = std::clamp(divide_up(wanted, size.n_panels), blocks,
                      std::max(blocks, divide_up(size.rows, 8 * tiles.rows)));
  const int64_t tiles_of_block = divide_up(divide_up(size.rows, blocks), tiles.rows);
  tiles.block_rows = static_cast<int>(tiles_of_block * tiles.rows);
  if (2 * tiles.block_rows <= room / 2 && size.n_panels * blocks >= 2 * wanted) {
    tiles.block_panels = 2;
  }
  const int64_t capacity = std::max<int64_t>(most, tiles.block_rows * tiles.block_panels);
  tiles.sum_rows = static_cast<int>(capacity);
  if (size.narrow && tiles_of_block >= kWidenTiles) {
    tiles.widen_depth = static_cast<int>(std::min(kDepth, room / 2));
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
