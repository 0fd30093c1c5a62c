// What goes wrong on the threads that drive devices, kept for the one that waits for results.
#ifndef QUINTET_PIPELINE_FAILURES_H_
#define QUINTET_PIPELINE_FAILURES_H_

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "quintet/error.h"

namespace quintet {

// What a stage threw, and the records that were under way in it.
class BatchError : public Error {
 public:
  BatchError(ErrorKind kind, const std::string& message, std::vector<uint64_t> ordinals)
      : Error(kind, message), ordinals_(std::move(ordinals)) {}
  const std::vector<uint64_t>& ordinals() const { return ordinals_; }

 private:
  std::vector<uint64_t> ordinals_;
};

// The first failure in the order of the work, which need not be the first in time. Thread-safe.
class Failures {
 public:
  // The exception being handled, as "label: its message"; `place` counts the work.
  void add_current(uint64_t place, const std::string& label, std::vector<uint64_t> ordinals);
  void raise() const;  // throws it where there is one

 private:
  mutable std::mutex mutex_;
  uint64_t place_ = 0;
  std::optional<BatchError> first_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_FAILURES_H_
