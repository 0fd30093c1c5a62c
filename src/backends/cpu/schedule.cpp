#include "backends/cpu/schedule.h"

#include <algorithm>
#include <vector>

namespace quintet {

namespace {

// A tile's sums wait in the second-level cache: at most this many rows of inner tiles by columns.
constexpr size_t kInnerTiles = 16;
constexpr size_t kTileCols = 512;
constexpr size_t kLeastPanels = 2;
constexpr size_t kItemsPerThread = 12;  // so that threads end at about the same time

// Few rows: about so many items per thread, of no less than half so many bytes of weights.
constexpr size_t kStreamItems = 8;
constexpr size_t kStreamBytes = size_t{256} << 10;
constexpr size_t kTinyBytes = size_t{64} << 10;  // not worth a second thread

// Panels that weights are cut between, one item's behind the other's. Where there are plenty, cuts
// fall between groups of four, which are read together.
std::vector<size_t> stream_cuts(const PanelView& w, const GemmKernels& kernels, size_t width) {
  const size_t bytes = w.n_panels * w.d_in * 2 * kernels.lanes * size_of(w.dtype);
  if (width == 1 || bytes <= kTinyBytes) return {0, w.n_panels};
  size_t unit = 4;
  while (unit > 1 && w.n_panels < 4 * unit * width) unit /= 2;
  const size_t n_units = (w.n_panels + unit - 1) / unit;
  const size_t per_thread = std::clamp<size_t>(bytes / (width * kStreamBytes), 1, kStreamItems);
  // Equal items, or threads would wait for the last: of one unit each where two would be too many.
  const size_t wanted = per_thread * width;
  const size_t n_items = n_units < 2 * wanted ? n_units : wanted;
  std::vector<size_t> cuts;
  cuts.reserve(n_items + 1);
  for (size_t i = 0; i <= n_items; ++i) {
    cuts.push_back(std::min(w.n_panels, n_units * i / n_items * unit));
  }
  return cuts;
}

MatrixView view_of(const Tensor& t) { return {t.row<float>(0), t.stride()}; }

}  // namespace

void run_linear(const MatrixView& x, size_t rows, const PanelView& w, const Epilogue& epilogue,
                const MatrixView& y, Isa isa, ThreadPool& pool) {
  if (rows == 0 || w.n_panels == 0) return;
  const GemmKernels& kernels = gemm_kernels(isa);
  const TileEpilogue tile_epilogue{
      .activation = epilogue.activation,
      .accumulate = epilogue.accumulate,
      .scale = epilogue.scale,
      .bias = epilogue.bias.empty() ? nullptr : epilogue.bias.row<float>(0)};
  if (kernels.streams(rows, w.dtype)) {
    const auto cuts = stream_cuts(w, kernels, static_cast<size_t>(pool.width()));
    pool.parallel_for(static_cast<int64_t>(cuts.size()) - 1, [&](int64_t item) {
      kernels.linear_tile({.x = x,
                           .y = y,
                           .w = w,
                           .epilogue = tile_epilogue,
                           .row_begin = 0,
                           .row_end = rows,
                           .panel_begin = cuts[static_cast<size_t>(item)],
                           .panel_end = cuts[static_cast<size_t>(item) + 1]});
    });
    return;
  }
  const size_t most_rows = kInnerTiles * kernels.max_rows;
  const size_t row_blocks = (rows + most_rows - 1) / most_rows;
  size_t panels = std::min(w.n_panels, kTileCols / (2 * kernels.lanes));
  size_t col_blocks = (w.n_panels + panels - 1) / panels;
  if (pool.width() > 1) {
    const size_t wanted = kItemsPerThread * static_cast<size_t>(pool.width());
    const size_t most = std::max<size_t>(1, w.n_panels / kLeastPanels);
    col_blocks = std::max(col_blocks, std::min(most, (wanted + row_blocks - 1) / row_blocks));
  }
  pool.parallel_for(static_cast<int64_t>(row_blocks * col_blocks), [&](int64_t item) {
    const size_t row = static_cast<size_t>(item) % row_blocks;
    const size_t col = static_cast<size_t>(item) / row_blocks;
    kernels.linear_tile({.x = x,
                         .y = y,
                         .w = w,
                         .epilogue = tile_epilogue,
                         .row_begin = rows * row / row_blocks,
                         .row_end = rows * (row + 1) / row_blocks,
                         .panel_begin = w.n_panels * col / col_blocks,
                         .panel_end = w.n_panels * (col + 1) / col_blocks});
  });
}

void run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& position_bias,
                   const MicroBatch& batch, int64_t first_row, const AttentionArgs& args,
                   const Tensor& y, Isa isa, ThreadPool& pool) {
  if (q.rows() == 0) return;
  const AttentionKernels& kernels = attention_kernels(isa);
  const auto span_rows = static_cast<int64_t>(kernels.span_rows);
  // The rows' sequences, each cut into spans of queries.
  struct Part {
    int64_t key_begin;
    int64_t key_end;
    int64_t begin;  // queries, rows of the batch
    int64_t end;
    int64_t n_spans;
    int64_t items_before;
  };
  std::vector<Part> parts;
  int64_t n_items = 0;
  const int64_t last_row = first_row + q.rows();
  for (int64_t s = 0; s < batch.n_seqs(); ++s) {
    const int64_t key_begin = batch.cu_seqlens[static_cast<size_t>(s)];
    const int64_t key_end = batch.cu_seqlens[static_cast<size_t>(s) + 1];
    const int64_t begin = std::max(key_begin, first_row);
    const int64_t end = std::min(key_end, last_row);
    if (begin >= end) continue;
    const int64_t n_spans = (end - begin + span_rows - 1) / span_rows;
    parts.push_back({key_begin, key_end, begin, end, n_spans, n_items});
    n_items += n_spans * args.n_heads;
  }
  const MatrixView all_q = view_of(q);
  const MatrixView all_k = view_of(k);
  const MatrixView all_v = view_of(v);
  const MatrixView all_y = view_of(y);
  pool.parallel_for(n_items, [&](int64_t item) {
    const auto after = std::upper_bound(
        parts.begin(), parts.end(), item,
        [](int64_t i, const Part& candidate) { return i < candidate.items_before; });
    const Part& part = *(after - 1);
    const int64_t head = (item - part.items_before) / part.n_spans;
    const int64_t span = (item - part.items_before) % part.n_spans;
    const int64_t begin = part.begin + span * span_rows;
    const int64_t end = std::min(part.end, begin + span_rows);
    const auto at = [&](const MatrixView& m, int64_t row) {
      return MatrixView{m.row(static_cast<size_t>(row)) + head * args.d_kv, m.stride};
    };
    kernels.span({.q = at(all_q, begin - first_row),
                  .k = at(all_k, part.key_begin),
                  .v = at(all_v, part.key_begin),
                  .y = at(all_y, begin - first_row),
                  .n_queries = static_cast<size_t>(end - begin),
                  .n_keys = static_cast<size_t>(part.key_end - part.key_begin),
                  .d_kv = static_cast<size_t>(args.d_kv),
                  .scale = args.scale,
                  .causal = args.causal,
                  .bias = position_bias.empty()
                              ? nullptr
                              : position_bias.row<float>(head) + position_bias.cols() / 2,
                  .query_positions = batch.positions.data() + begin,
                  .key_positions = batch.positions.data() + part.key_begin});
  });
}

}  // namespace quintet
