#include "backends/opencl/platforms.h"
