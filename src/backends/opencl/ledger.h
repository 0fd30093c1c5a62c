// What this process holds on OpenCL devices, over all Device objects: one book, for the questions
// that are asked without a Device.
#ifndef QUINTET_BACKENDS_OPENCL_LEDGER_H_
#define QUINTET_BACKENDS_OPENCL_LEDGER_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace quintet::opencl {

class Ledger {
 public:
  static Ledger& instance();

  // Bytes more (or fewer) in tensors and weights of a device.
  void use(const std::string& device, ptrdiff_t bytes);
  // Bytes more (or fewer) taken from a pool of memory, whether used or kept for reuse.
  void take(const std::string& pool, ptrdiff_t bytes);

  size_t used(const std::string& device) const;
  size_t taken(const std::string& pool) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, size_t> used_;   // by device
  std::map<std::string, size_t> taken_;  // by pool
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_LEDGER_H_
