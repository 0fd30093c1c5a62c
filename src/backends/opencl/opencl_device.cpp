#include "backends/opencl/opencl_device.h"

#include "backends/opencl/queue_session.h"
