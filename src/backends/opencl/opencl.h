// The OpenCL headers as this backend uses them: version 1.2, with exceptions.
#ifndef QUINTET_BACKENDS_OPENCL_OPENCL_H_
#define QUINTET_BACKENDS_OPENCL_OPENCL_H_

#define CL_TARGET_OPENCL_VERSION 120
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_ENABLE_EXCEPTIONS
#include <CL/opencl.hpp>

#endif  // QUINTET_BACKENDS_OPENCL_OPENCL_H_
