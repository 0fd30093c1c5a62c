#include "backends/opencl/ledger.h"

namespace quintet::opencl {
namespace {

size_t value_of(const std::map<std::string, size_t>& book, const std::string& name) {
  const auto found = book.find(name);
  return found == book.end() ? 0 : found->second;
}

}  // namespace

Ledger& Ledger::instance() {
  static Ledger ledger;
  return ledger;
}

void Ledger::use(const std::string& device, ptrdiff_t bytes) {
  const std::scoped_lock lock(mutex_);
  used_[device] += static_cast<size_t>(bytes);
}

void Ledger::take(const std::string& pool, ptrdiff_t bytes) {
  const std::scoped_lock lock(mutex_);
  taken_[pool] += static_cast<size_t>(bytes);
}

size_t Ledger::used(const std::string& device) const {
  const std::scoped_lock lock(mutex_);
  return value_of(used_, device);
}

size_t Ledger::taken(const std::string& pool) const {
  const std::scoped_lock lock(mutex_);
  return value_of(taken_, pool);
}

}  // namespace quintet::opencl
