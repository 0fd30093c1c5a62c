#include "placement/host_bytes.h"

#include <algorithm>

namespace quintet {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kProgram = 0.12 * kMiB;   // code that is first used now
constexpr double kThread = 0.14 * kMiB;    // stack and work memory, short of the keys' bias
constexpr double kHeap = 4 * kMiB;         // what passing records leave in the heap of the threads
constexpr double kStageHeap = 1 * kMiB;    //   and more with each further stage
constexpr double kSettled = 512;           // records after which the heap grows no more
constexpr double kHdf5 = 3 * kMiB;         // the library at work
constexpr double kHdf5Cache = 1.5 * kMiB;  //   and its metadata of the latest records
constexpr double kRemembered = 112;        // of each record, its id and sequence as hashes

}  // namespace

int64_t host_bytes(const HostLoad& load) {
  const double row = 4 * static_cast<double>(load.d_model);
  const auto batch_rows = static_cast<double>(load.batch_rows);
  const double rows = std::max(batch_rows, static_cast<double>(load.longest_rows));
  const auto n_threads = static_cast<double>(load.n_threads);
  const auto n_records = static_cast<double>(load.n_records);
  const double settled = load.n_records > 0 ? std::min(1.0, n_records / kSettled) : 1;

  // The rows as the last stage hands them over (an eighth larger) and as written; while computing
  // also as they wait for their turn, at the end beside the file that is built.
  const double twice =
      rows * row * 1.125 + rows * static_cast<double>(load.d_model * load.bytes_per_number);
  const double computing = twice + rows * row;
  const double building = twice + (load.hdf5 ? kHdf5 + kHdf5Cache * settled : 0);
  const double heap = (kHeap + kStageHeap * static_cast<double>(load.n_stages - 1)) * settled;
  const double threads = n_threads * (kThread + 4 * static_cast<double>(load.longest));
  return static_cast<int64_t>(kProgram + std::max(computing, building) + 2 * batch_rows * row +
                              heap + threads + kRemembered * n_records);
}

}  // namespace quintet
