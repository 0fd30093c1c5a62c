// Attention over packed sequences: cuts the rows into tiles of one sequence each, and chooses the
// kernel's form and the tile's size from the device's limits. See kernels/attention.cl.
#include <algorithm>
#include <cassert>
#include <string>
#include <vector>

#include "backends/opencl/attention_form.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"

namespace quintet::opencl {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kMaxTileRows = 256;  // that share a pass over keys and values

struct Form {
  int64_t lanes = 0;  // 0: groups
  int64_t parts = 1;  // of a tile, 2 * lanes rows each; with lanes
  int64_t group_x = 1;
  int64_t group_y = 1;
  int64_t rows = 1;  // of a work-item
  int64_t tile_rows() const { return lanes > 0 ? parts * 2 * lanes : group_y * rows; }
  int64_t local_bytes(int64_t d_kv) const;
  std::string defines(int64_t d_kv) const;
};

int64_t Form::local_bytes(int64_t d_kv) const {
  if (lanes > 0) {
    return kFloat * (tile_rows() * (2 * d_kv + 3) + 2 * lanes * (kBlockKeys + 1) + kBlockKeys);
  }
  constexpr int64_t kChunkStride = 17;
  return kFloat * (tile_rows() * (kChunkStride + kBlockKeys + group_x) + kBlockKeys * kChunkStride);
}

std::string Form::defines(int64_t d_kv) const {
  const std::string first = "-D D_KV=" + std::to_string(d_kv);
  if (lanes > 0) {
    return first + " -D LANES=" + std::to_string(lanes) + " -D PARTS=" + std::to_string(parts);
  }
  return first + " -D GROUP_X=" + std::to_string(group_x) +
         " -D GROUP_Y=" + std::to_string(group_y) + " -D ROWS=" + std::to_string(rows);
}

// The largest tile that the device's groups and local memory have room for.
Form choose_form(const Limits& limits, int64_t d_kv) {
  const auto room = static_cast<int64_t>(limits.local_bytes);
  Form form;
  for (form.lanes = vector_lanes(limits); form.lanes >= 4; form.lanes /= 2) {
    // Half of the local memory, which here is cache, is left to the keys and values.
    for (form.parts = kMaxTileRows / (2 * form.lanes); form.parts >= 1; form.parts /= 2) {
      if (form.local_bytes(d_kv) <= room / 2) return form;
    }
  }
  constexpr int64_t kGroupSide = 16;
  const auto most = static_cast<int64_t>(std::bit_floor(std::max<size_t>(limits.work_group, 1)));
  form.lanes = 0;
  form.group_x = std::min(kGroupSide, most);
  form.group_y = std::min(kGroupSide, most / form.group_x);
  form.rows = 4;
  while (form.local_bytes(d_kv) > room && form.rows > 1) form.rows /= 2;
  while (form.local_bytes(d_kv) > room && form.group_y > 1) form.group_y /= 2;
  return form;
}

struct Tile {
  cl_int row;  // of the batch
  cl_int rows;
  cl_int key_begin;
  cl_int key_end;
};

// Rows [first_row, last_row) of the batch, no tile with rows of two sequences.
std::vector<Tile> cut_into_tiles(const MicroBatch& batch, int64_t first_row, int64_t last_row,
                                 int64_t tile_rows) {
  std::vector<Tile> tiles;
  for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
    const int64_t key_begin = batch.cu_seqlens[s];
    const int64_t key_end = batch.cu_seqlens[s + 1];
    const int64_t end = std::min(key_end, last_row);
    for (int64_t row = std::max(key_begin, first_row); row < end; row += tile_rows) {
      tiles.push_back({static_cast<cl_int>(row),
                       static_cast<cl_int>(std::min(tile_rows, end - row)),
                       static_cast<cl_int>(key_begin), static_cast<cl_int>(key_end)});
    }
  }
  return tiles;
}

}  // namespace

void OpenclDevice::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& position_bias, const MicroBatch& batch,
                             int64_t first_row, const AttentionArgs& args, const Tensor& y) {
  assert(q.cols() == args.n_heads * args.d_kv && k.rows() == batch.n_tokens());
  if (q.empty()) return;
  Session& session = *session_;
  const Form form = choose_form(session.limits(), args.d_kv);
  const std::vector<Tile> tiles =
      cut_into_tiles(batch, first_row, first_row + q.rows(), form.tile_rows());
  cl::Kernel& kernel = session.kernel(
      "attention", form.lanes > 0 ? "attend_lanes" : "attend_groups", form.defines(args.d_kv));
  const bool biased = !position_bias.empty();
  const auto group_x = static_cast<size_t>(form.group_x);
  const auto group_y = static_cast<size_t>(form.group_y);
  session.launch(kernel, {tiles.size() * group_x, static_cast<size_t>(args.n_heads) * group_y, 1},
                 {group_x, group_y, 1}, MatrixArg(q), MatrixArg(k), MatrixArg(v), MatrixArg(y),
                 MatrixArg(biased ? position_bias : q),
                 static_cast<cl_int>(biased ? position_bias.cols() : 0),
                 session.stage(std::span<const int32_t>(batch.positions)),
                 session.stage(std::span<const Tile>(tiles)), static_cast<cl_int>(first_row),
                 args.scale, static_cast<cl_int>(args.causal ? 1 : 0));
}

}  // namespace quintet::opencl
