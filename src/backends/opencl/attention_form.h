// Which form of the attention kernels suits a device: lanes of vectors on processors, work-groups
// that share local memory elsewhere.
#ifndef QUINTET_BACKENDS_OPENCL_ATTENTION_FORM_H_
#define QUINTET_BACKENDS_OPENCL_ATTENTION_FORM_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/opencl/session.h"

namespace quintet::opencl {

inline constexpr int64_t kBlockKeys = 120;  // as all backends have it; the kernels' BLOCK_KEYS

// The vector width, 4, 8 or 16; 0: groups are better.
inline int64_t vector_lanes(const Limits& limits) {
  if (!limits.local_is_cache || limits.float_lanes < 2) return 0;
  return std::clamp<int64_t>(std::bit_floor(limits.float_lanes), 4, 16);
}

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_ATTENTION_FORM_H_
