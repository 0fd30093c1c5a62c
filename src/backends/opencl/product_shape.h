// How a device multiplies: which kernel, how wide the panels of its weights are, and the sizes of a
// product's tiles, all from what the device says of itself.
#ifndef QUINTET_BACKENDS_OPENCL_PRODUCT_SHAPE_H_
#define QUINTET_BACKENDS_OPENCL_PRODUCT_SHAPE_H_

#include <cstdint>
#include <string>

#include "backends/opencl/session.h"

namespace quintet::opencl {

// What weights are packed for.
struct PanelShape {
  int lanes = 0;  // floats of a vector: linear_wide.cl; 0: linear.cl
  int width = 0;  // columns of a panel
};

// Processors, whose local memory is main memory and whose vectors are wide, multiply in vectors,
// everything else by small work-items. QUINTET_OPENCL_PRODUCTS=wide or tiled decides otherwise.
PanelShape panel_shape(const Limits& limits);

// y[rows, ...] in panels, over d_in steps.
struct ProductSize {
  int64_t rows = 0;
  int64_t d_in = 0;
  int64_t n_panels = 0;
  bool narrow = false;  // weights of 16 bits
};

// A launch of linear_wide.
struct WideTiles {
  int rows = 0;          // of a tile
  int block_rows = 0;    // of a group
  int block_panels = 0;  // of a group
  int depth = 0;         // steps of k between pauses
  int sum_rows = 0;      // room for so many rows of sums, of all panels of a group
  int widen_depth = 0;   // 0, or room for so many widened steps

  std::string defines() const;
};
WideTiles wide_tiles(const ProductSize& size, const PanelShape& panels, const Limits& limits);

// A launch of linear_tiled.
struct GroupTiles {
  int panels = 0;  // of a group
  int group_cols = 0;
  int group_rows = 0;
  int tile_rows = 0;  // of a work-item
  int depth = 0;      // steps of k in local memory

  std::string defines() const;
};
GroupTiles group_tiles(const ProductSize& size, const PanelShape& panels, const Limits& limits);

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_PRODUCT_SHAPE_H_
