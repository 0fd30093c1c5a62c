#include "placement/advice.h"

#include <algorithm>

#include "core/human.h"

namespace quintet {
namespace {

constexpr int64_t kSmallestBatch = 64;  // tokens; below it, products run at a fraction of the speed

// The largest value in [low, high] that `good` accepts, good being true up to some point; low - 1
// where there is none.
int64_t largest(int64_t low, int64_t high, const std::function<bool(int64_t)>& good) {
  --low;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (good(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The largest smaller power of two (or the budget halved) under which it fits; 0: none.
int64_t fitting_batch(Trial trial, const FitsFunction& fits) {
  while (trial.profile.tokens_per_batch / 2 >= kSmallestBatch) {
    trial.profile.tokens_per_batch /= 2;
    if (fits(trial)) return trial.profile.tokens_per_batch;
  }
  return 0;
}

// The longest record that still fits, all others kept; 0: none of a useful length.
int64_t fitting_length(const Trial& now, const FitsFunction& fits) {
  if (now.profile.lengths.empty()) return 0;
  const int64_t longest = *std::max_element(now.profile.lengths.begin(), now.profile.lengths.end());
  const int64_t best = largest(1, longest - 1, [&](int64_t limit) {
    Trial trial = now;
    for (int32_t& length : trial.profile.lengths) {
      length = std::min(length, static_cast<int32_t>(limit));
    }
    return fits(trial);
  });
  return best >= std::min<int64_t>(kSmallestBatch, longest - 1) ? best : 0;
}

}  // namespace

int64_t extra_device_bytes(const std::vector<DeviceSpec>& devices, const DevicesFit& fit) {
  constexpr int64_t kHuge = int64_t{1} << 50;
  constexpr int64_t kStep = int64_t{1} << 20;
  const auto good = [&](int64_t steps_less) {
    std::vector<DeviceSpec> more = devices;
    DeviceSpec extra = devices.back();
    extra.name = "another device";
    extra.memory_pool.clear();
    extra.memory_bytes = kHuge - steps_less * kStep;
    more.push_back(extra);
    return fit(more);
  };
  const int64_t less = largest(0, kHuge / kStep - 1, good);
  return less < 0 ? 0 : kHuge - less * kStep;
}

std::string what_would_fit(const std::vector<std::string>& ways) {
  if (ways.empty()) return "nothing tried here makes it fit; use a smaller model";
  std::string text = "what would fit: " + ways.front();
  for (size_t i = 1; i < ways.size(); ++i) {
    text += (i + 1 == ways.size() ? ", or " : ", ") + ways[i];
  }
  return text;
}

std::string advise(const Trial& now, const PlanContext& context, bool map_given,
                   const FitsFunction& as_asked, const FitsFunction& freely) {
  std::vector<std::string> ways;
  if (map_given && freely(now)) ways.emplace_back("--device-map auto");
  for (const auto& [dtype, cost] : context.other_dtypes) {
    Trial trial = now;
    trial.cost = cost;
    if (dtype != context.dtype && as_asked(trial)) {
      ways.push_back("--dtype " + dtype);
      break;
    }
  }
  if (const int64_t tokens = fitting_batch(now, as_asked); tokens > 0) {
    ways.push_back(fmt::format("--tokens-per-batch {}", tokens));
  } else if (const int64_t length = fitting_length(now, as_asked); length > 0) {
    ways.push_back(fmt::format("records of at most {} tokens (--max-tokens {})", length, length));
  }
  if (ways.empty()) {
    for (const auto& [dtype, cost] : context.other_dtypes) {
      Trial trial = now;
      trial.cost = cost;
      const int64_t tokens = dtype == context.dtype ? 0 : fitting_batch(trial, as_asked);
      if (tokens == 0) continue;
      ways.push_back(fmt::format("--dtype {} with --tokens-per-batch {}", dtype, tokens));
      break;
    }
  }
  const auto with_devices = [&](const std::vector<DeviceSpec>& devices) {
    Trial trial = now;
    trial.devices = devices;
    return freely(trial);
  };
  if (const int64_t bytes = extra_device_bytes(now.devices, with_devices); bytes > 0) {
    ways.push_back(fmt::format("another device with {} free", human_bytes(bytes)));
  }
  return what_would_fit(ways);
}

}  // namespace quintet
