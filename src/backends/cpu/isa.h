// The instruction sets the CPU kernels are compiled for.
#ifndef QUINTET_BACKENDS_CPU_ISA_H_
#define QUINTET_BACKENDS_CPU_ISA_H_

#include <string_view>

namespace quintet {

enum class Isa { kAvx2, kAvx512 };

std::string_view name_of(Isa isa);  // "AVX2", "AVX-512"
bool has_isa(Isa isa);              // this machine and its system can run it
Isa best_isa();                     // throws Error(kDevice) on a CPU without AVX2

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_ISA_H_
