// The devices that parity tests run a model on: whole on the first, split over both.
#ifndef QUINTET_TESTS_PARITY_DEVICE_PAIR_H_
#define QUINTET_TESTS_PARITY_DEVICE_PAIR_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "core/split_list.h"

namespace quintet {

struct DevicePair {
  std::shared_ptr<Device> first;
  std::shared_ptr<Device> second;
};

// "cpu:0": two objects of one device; "opencl:0/2": its two parts; "cpu[0]+opencl:0": these two.
// Throws Error(kDevice) where one of them is not there.
inline DevicePair open_pair(const std::string& name) {
  const size_t plus = name.find('+');
  if (plus != std::string::npos) {
    return {open_device(name.substr(0, plus)), open_device(name.substr(plus + 1))};
  }
  const std::vector<std::string> names = canonical_device_names(name);
  return {open_device(names.front()), open_device(names.back())};
}

inline std::vector<std::string> pairs_under_test() {
  const char* named = std::getenv("QUINTET_TEST_DEVICES");
  return split_list(named != nullptr ? named
                                     : "reference:0,cpu:0,opencl:0,opencl:0/2,cpu[0]+opencl:0,"
                                       "opencl:0+cpu[0]");
}

// Whether both divide alike, so that a model has the same bits on either: found by dividing.
inline bool same_arithmetic(const DevicePair& pair) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kCols = 33;
  std::vector<float> values(kRows * kCols);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 7919 % 1009) / 17.0F - 20.0F;
  }
  const std::vector<float> weight(kCols, 1.0F);
  std::vector<float> results[2];
  int which = 0;
  for (Device* device : {pair.first.get(), pair.second.get()}) {
    const Tensor x = device->allocate(kRows, kCols);
    const Tensor w = device->allocate(1, kCols);
    device->upload(values.data(), x);
    device->upload(weight.data(), w);
    device->rms_norm(x, w, 1e-6F, x);
    results[which].resize(values.size());
    device->download(x, results[which++].data());
  }
  return results[0] == results[1];
}

}  // namespace quintet

#endif  // QUINTET_TESTS_PARITY_DEVICE_PAIR_H_
