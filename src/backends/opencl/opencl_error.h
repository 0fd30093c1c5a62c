// From OpenCL's error codes to Error: which device, which call, what the code means.
#ifndef QUINTET_BACKENDS_OPENCL_OPENCL_ERROR_H_
#define QUINTET_BACKENDS_OPENCL_OPENCL_ERROR_H_

#include <string>
#include <utility>

#include "backends/opencl/opencl.h"

namespace quintet::opencl {

// "CL_OUT_OF_RESOURCES (-5)"; of unknown codes only the number.
std::string error_text(cl_int code);

// Throws Error(kMemory) for codes that say that memory could not be had, else Error(kDevice).
[[noreturn]] void fail_call(const std::string& device, const char* call, cl_int code);

// What `work` returns; a cl::Error that it throws leaves as fail_call()'s.
template <typename Work>
decltype(auto) guarded(const std::string& device, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const cl::Error& error) {
    fail_call(device, error.what(), error.err());
  }
}

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_OPENCL_ERROR_H_
