#include "pipeline/failures.h"

#include <fmt/format.h>

#include <new>
#include <utility>

namespace quintet {
namespace {

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kMemory, "out of host memory"};
  } catch (const std::exception& error) {
    return {ErrorKind::kDevice, error.what()};
  }
}

}  // namespace

void Failures::add_current(uint64_t place, const std::string& label,
                           std::vector<uint64_t> ordinals) {
  const Error error = current_error();
  const std::scoped_lock lock(mutex_);
  if (first_ && place_ <= place) return;
  place_ = place;
  first_.emplace(error.kind(), fmt::format("{}: {}", label, error.what()), std::move(ordinals));
}

void Failures::raise() const {
  const std::scoped_lock lock(mutex_);
  if (first_) throw BatchError(*first_);
}

}  // namespace quintet
