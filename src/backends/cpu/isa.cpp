#include "backends/cpu/isa.h"

#include "core/error.h"

namespace quintet {

std::string_view name_of(Isa isa) { return isa == Isa::kAvx512 ? "AVX-512" : "AVX2"; }

bool has_isa(Isa isa) {
  // Whatever has AVX2 has F16C too, which not every compiler can ask for.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  if (isa == Isa::kAvx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}

Isa best_isa() {
  if (has_isa(Isa::kAvx512)) return Isa::kAvx512;
  if (has_isa(Isa::kAvx2)) return Isa::kAvx2;
  fail(ErrorKind::kDevice,
       "cpu: this processor lacks AVX2, FMA or F16C, which the CPU kernels need; the slow backend "
       "reference:0 runs anywhere");
}

}  // namespace quintet
