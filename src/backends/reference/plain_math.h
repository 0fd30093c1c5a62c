// What the reference's ops share: sums in double.
#ifndef QUINTET_BACKENDS_REFERENCE_PLAIN_MATH_H_
#define QUINTET_BACKENDS_REFERENCE_PLAIN_MATH_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quintet {

inline double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// y[d_kv] = the sum over j of softmax(scores)[j] * value_of(j)[d_kv]; at least one score.
template <typename ValueOf>
void weigh(const std::vector<double>& scores, const ValueOf& value_of, int64_t d_kv, float* y) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  std::vector<double> sums(static_cast<size_t>(d_kv));
  for (size_t j = 0; j < scores.size(); ++j) {
    const double share = std::exp(scores[j] - highest);
    total += share;
    const float* value = value_of(j);
    for (size_t d = 0; d < sums.size(); ++d) sums[d] += share * value[d];
  }
  for (size_t d = 0; d < sums.size(); ++d) y[d] = static_cast<float>(sums[d] / total);
}

}  // namespace quintet

#endif  // QUINTET_BACKENDS_REFERENCE_PLAIN_MATH_H_
