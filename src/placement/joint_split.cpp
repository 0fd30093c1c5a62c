#include "placement/joint_split.h"

#include <algorithm>
#include <limits>

namespace quintet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Prices that differ by less are equal: the same blocks summed in another order.
constexpr double kTolerance = 1 + 1e-9;

// Dynamic programming over (devices looked at, decoder stages used, encoder blocks placed, decoder
// blocks placed).
class Table {
 public:
  Table(int64_t n_encoder, int64_t n_decoder, size_t n_devices, size_t max_stages)
      : n_encoder_(n_encoder),
        n_decoder_(n_decoder),
        n_devices_(n_devices),
        max_stages_(std::min(n_devices, max_stages)) {}

  // Fills the table with runs of at most `bound`, each folded into a total by `combine(total so
  // far, price)`. Returns the least price that was found above the bound; infinity: none was.
  template <typename Combine>
  double fill(const JointPrice& price, double bound, Combine combine) {
    cells_.assign((n_devices_ + 1) * layer_size(), Cell{});
    cell(0, 0, 0, 0).total = 0;
    double above = kInfinity;
    for (size_t d = 0; d < n_devices_; ++d) {
      for (int64_t e = 0; e <= n_encoder_; ++e) {
        for (int64_t l = 0; l <= n_decoder_; ++l) {
          if (!reached(d, e, l)) continue;
          above = std::min(above, extend(d, e, l, price, bound, combine));
        }
      }
    }
    return above;
  }

  double total() const {
    double best = kInfinity;
    for (size_t s = 0; s <= max_stages_; ++s) {
      best = std::min(best, cell(n_devices_, s, n_encoder_, n_decoder_).total);
    }
    return best;
  }

  std::vector<JointRun> runs() const {
    size_t s = 0;
    while (cell(n_devices_, s, n_encoder_, n_decoder_).total > total()) ++s;
    std::vector<JointRun> runs(n_devices_);
    int64_t e = n_encoder_;
    int64_t l = n_decoder_;
    for (size_t d = n_devices_; d > 0; --d) {
      const Cell& here = cell(d, s, e, l);
      runs[d - 1] = {.encoder = {here.encoder, e}, .decoder = {here.decoder, l}};
      if (here.decoder < l) --s;
      e = here.encoder;
      l = here.decoder;
    }
    return runs;
  }

 private:
  struct Cell {
    double total = kInfinity;
    int64_t encoder = 0;  // where the last device's runs begin
    int64_t decoder = 0;
  };

  bool reached(size_t d, int64_t e, int64_t l) const {
    for (size_t s = 0; s <= max_stages_; ++s) {
      if (cell(d, s, e, l).total < kInfinity) return true;
    }
    return false;
  }

  // All that device d can take after e and l blocks.
  template <typename Combine>
  double extend(size_t d, int64_t e, int64_t l, const JointPrice& price, double bound,
                Combine combine) {
    double above = kInfinity;
    for (int64_t to_e = e; to_e <= n_encoder_; ++to_e) {
      int64_t to_l = l;
      for (; to_l <= n_decoder_; ++to_l) {
        const JointRun run = {.encoder = {e, to_e}, .decoder = {l, to_l}};
        const double own = run.empty() ? 0 : price(d, run);
        if (own > bound || own == kInfinity) {
          above = std::min(above, own);
          break;
        }
        offer_all(d, run, own, combine);
      }
      if (to_l == l) break;  // not even without decoder blocks
    }
    return above;
  }

  template <typename Combine>
  void offer_all(size_t d, const JointRun& run, double own, Combine combine) {
    const size_t more = run.decoder.empty() ? 0 : 1;
    for (size_t s = 0; s + more <= max_stages_; ++s) {
      const double before = cell(d, s, run.encoder.first, run.decoder.first).total;
      if (before == kInfinity) continue;
      Cell& there = cell(d + 1, s + more, run.encoder.last, run.decoder.last);
      const double total = combine(before, own);
      if (total < there.total) there = {total, run.encoder.first, run.decoder.first};
    }
  }

  size_t layer_size() const {
    return (max_stages_ + 1) * static_cast<size_t>((n_encoder_ + 1) * (n_decoder_ + 1));
  }
  size_t index(size_t d, size_t s, int64_t e, int64_t l) const {
    return d * layer_size() +
           (s * static_cast<size_t>(n_encoder_ + 1) + static_cast<size_t>(e)) *
               static_cast<size_t>(n_decoder_ + 1) +
           static_cast<size_t>(l);
  }
  Cell& cell(size_t d, size_t s, int64_t e, int64_t l) { return cells_[index(d, s, e, l)]; }
  const Cell& cell(size_t d, size_t s, int64_t e, int64_t l) const {
    return cells_[index(d, s, e, l)];
  }

  int64_t n_encoder_;
  int64_t n_decoder_;
  size_t n_devices_;
  size_t max_stages_;
  std::vector<Cell> cells_;
};

}  // namespace

JointSplit search_joint_split(int64_t n_encoder, int64_t n_decoder, size_t n_devices,
                              size_t max_decoder_stages, const JointPrice& price) {
  Table table(n_encoder, n_decoder, n_devices, max_decoder_stages);
  const auto worst_of = [](double total, double own) { return std::max(total, own); };
  // A low bound keeps the search small and changes no answer below it: it is raised until there is
  // one.
  double bound = 0;
  JointSplit split{.worst = kInfinity, .runs = {}};
  while (split.worst == kInfinity) {
    const double above = table.fill(price, bound, worst_of);
    split.worst = table.total();
    if (split.worst < kInfinity) break;
    if (above == kInfinity) return split;
    bound = std::max(above, bound * 1.25);
  }
  const double worst = split.worst * kTolerance;
  table.fill(price, worst, [](double total, double own) { return total + own * own; });
  split.runs = table.runs();
  return split;
}

}  // namespace quintet
