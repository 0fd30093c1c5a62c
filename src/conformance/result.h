// What a test of one class came to.
#ifndef QUINTET_CONFORMANCE_RESULT_H_
#define QUINTET_CONFORMANCE_RESULT_H_

#include <optional>
#include <string>
#include <vector>

namespace quintet::conformance {

// Something that did not hold.
struct Finding {
  std::string what;  // "even: hidden states of sequence 3"
  std::string expected;
  std::string found;
};

enum class Outcome { kPass, kFail, kSkip };

struct CellResult {
  std::string model_class;
  std::string test;
  Outcome outcome = Outcome::kPass;
  std::string reason = {};  // of a skip
  std::vector<Finding> findings = {};
  double seconds = 0;
  // The largest between kinds of devices; none where nothing was compared between them.
  std::optional<double> relative_difference = {};
};

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_RESULT_H_
