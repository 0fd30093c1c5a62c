// The targets that Highway compiles the kernels for; before any header of Highway.
#ifndef QUINTET_BACKENDS_CPU_TARGETS_H_
#define QUINTET_BACKENDS_CPU_TARGETS_H_

#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3))

#endif  // QUINTET_BACKENDS_CPU_TARGETS_H_
