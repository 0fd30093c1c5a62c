#include "placement/split_search.h"

#include <algorithm>
#include <limits>

namespace quintet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Prices that differ by less are equal: the same blocks summed in another order.
constexpr double kTolerance = 1 + 1e-9;

// Dynamic programming over (devices looked at, devices used, blocks placed).
class Table {
 public:
  Table(int64_t n_blocks, size_t n_devices, size_t max_devices)
      : n_(n_blocks), devices_(n_devices), max_used_(std::min(n_devices, max_devices)) {}

  // price[d][first][last] is folded into a total by `combine(total so far, price)`.
  template <typename Combine>
  void fill(const RunPrice& price, Combine combine) {
    cells_.assign((devices_ + 1) * (max_used_ + 1) * width(), Cell{});
    cell(0, 0, 0).total = 0;
    for (size_t d = 0; d < devices_; ++d) {
      for (size_t used = 0; used <= max_used_; ++used) {
        for (int64_t i = 0; i <= n_; ++i) {
          offer(cell(d + 1, used, i), cell(d, used, i).total, -1);  // device d stays unused
        }
      }
      for (int64_t first = 0; first < n_; ++first) {
        for (int64_t last = first + 1; last <= n_; ++last) {
          const double own = price(d, first, last);
          if (own == kInfinity) continue;
          for (size_t used = 0; used < max_used_; ++used) {
            const double before = cell(d, used, first).total;
            if (before == kInfinity) continue;
            offer(cell(d + 1, used + 1, last), combine(before, own), first);
          }
        }
      }
    }
  }

  double total(size_t used) const { return cell(devices_, used, n_).total; }
  size_t max_used() const { return max_used_; }

  std::vector<BlockRun> runs(size_t used) const {
    std::vector<BlockRun> runs;
    int64_t last = n_;
    for (size_t d = devices_; d > 0; --d) {
      const int64_t first = cell(d, used, last).first;
      if (first < 0) continue;
      runs.push_back({.device = d - 1, .first = first, .last = last});
      last = first;
      --used;
    }
    std::reverse(runs.begin(), runs.end());
    return runs;
  }

 private:
  struct Cell {
    double total = kInfinity;
    int64_t first = -1;  // where the last run begins; -1: the last device is unused
  };

  static void offer(Cell& cell, double total, int64_t first) {
    if (total < cell.total) cell = {total, first};
  }

  size_t width() const { return static_cast<size_t>(n_) + 1; }
  size_t index(size_t d, size_t used, int64_t i) const {
    return (d * (max_used_ + 1) + used) * width() + static_cast<size_t>(i);
  }
  Cell& cell(size_t d, size_t used, int64_t i) { return cells_[index(d, used, i)]; }
  const Cell& cell(size_t d, size_t used, int64_t i) const { return cells_[index(d, used, i)]; }

  int64_t n_;
  size_t devices_;
  size_t max_used_;
  std::vector<Cell> cells_;
};

}  // namespace

SplitResult search_split(int64_t n_blocks, size_t n_devices, size_t max_devices,
                         const RunPrice& price) {
  Table table(n_blocks, n_devices, max_devices);
  table.fill(price, [](double total, double own) { return std::max(total, own); });
  SplitResult result{.worst = kInfinity, .runs = {}};
  for (size_t used = 1; used <= table.max_used(); ++used) {
    result.worst = std::min(result.worst, table.total(used));
  }
  if (result.worst == kInfinity) return result;
  size_t most = table.max_used();
  while (table.total(most) > result.worst * kTolerance) --most;

  const double bound = result.worst * kTolerance;
  const auto bounded = [&](size_t d, int64_t first, int64_t last) {
    const double own = price(d, first, last);
    return own <= bound ? own : kInfinity;
  };
  table.fill(bounded, [](double total, double own) { return total + own * own; });
  result.runs = table.runs(most);
  return result;
}

}  // namespace quintet
