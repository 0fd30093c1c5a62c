// What the kernels are written in: names that OpenCL C 1.2 and CUDA C++ both have a word for.
#if defined(__OPENCL_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL __kernel void
#define DEVICE_FUNCTION static inline
#define GLOBAL __global
#define LOCAL __local          // of a variable in a kernel
#define LOCAL_POINTER __local  // of what a pointer points to
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP_ID(d) ((int)get_group_id(d))
#define GROUP_COUNT(d) ((int)get_num_groups(d))
#define LOCAL_ID(d) ((int)get_local_id(d))
#define LOCAL_SIZE(d) ((int)get_local_size(d))
#define GLOBAL_ID(d) ((long)get_global_id(d))
#define FUSED(a, b, c) fma(a, b, c)
#define SQUARE_ROOT(x) sqrt(x)
#define FLOAT_OF_BITS(x) as_float((uint)(x))
#define BITS_OF_FLOAT(x) as_uint((float)(x))
#define ADD_ATOMICALLY(pointer, value) atomic_add(pointer, value)  // gives what was there
typedef ushort bits16;
typedef uint bits32;
#else  // CUDA; compiled with --fmad=false
#define KERNEL extern "C" __global__ void
#define DEVICE_FUNCTION static __device__ inline
#define GLOBAL
#define LOCAL __shared__
#define LOCAL_POINTER
#define BARRIER() __syncthreads()
#define DIMENSION(v, d) ((d) == 0 ? (v).x : (d) == 1 ? (v).y : (v).z)
#define GROUP_ID(d) ((int)DIMENSION(blockIdx, d))
#define GROUP_COUNT(d) ((int)DIMENSION(gridDim, d))
#define LOCAL_ID(d) ((int)DIMENSION(threadIdx, d))
#define LOCAL_SIZE(d) ((int)DIMENSION(blockDim, d))
#define GLOBAL_ID(d) ((long)GROUP_ID(d) * LOCAL_SIZE(d) + LOCAL_ID(d))
#define FUSED(a, b, c) __fmaf_rn(a, b, c)
#define SQUARE_ROOT(x) __fsqrt_rn(x)
#define FLOAT_OF_BITS(x) __uint_as_float(x)
#define BITS_OF_FLOAT(x) __float_as_uint(x)
#define ADD_ATOMICALLY(pointer, value) atomicAdd(pointer, value)
typedef unsigned short bits16;
typedef unsigned int bits32;
#endif

// A matrix of floats as an argument: Session's MatrixArg. The address of its row.
#define MATRIX(x) GLOBAL float *x, long x##_offset, long x##_stride
#define ROW_OF(x, row) ((x) + (x##_offset + (long)(row)*x##_stride))
