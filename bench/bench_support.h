// What the benchmark programs share: numbers to multiply, lists of options, the median.
#ifndef QUINTET_BENCH_BENCH_SUPPORT_H_
#define QUINTET_BENCH_BENCH_SUPPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace quintet {

// The same at each call.
inline std::vector<float> numbers(size_t n) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(n);
  for (float& value : values) value = uniform(random);
  return values;
}

// "64,512" -> {64, 512}.
inline std::vector<int64_t> numbers_in(const std::string& list) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < list.size();) {
    size_t used = 0;
    numbers.push_back(std::stoll(list.substr(at), &used));
    at += used + 1;
  }
  return numbers;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace quintet

#endif  // QUINTET_BENCH_BENCH_SUPPORT_H_
