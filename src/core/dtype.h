// Number types of tensors, and exact widening / round-to-nearest-even narrowing between them.
#ifndef QUINTET_CORE_DTYPE_H_
#define QUINTET_CORE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quintet {

enum class DType { kFloat32, kBFloat16, kFloat16, kInt32, kInt64, kUInt8 };

size_t size_of(DType dtype);                                  // bytes per element
std::string_view name_of(DType dtype);                        // "float32", "bfloat16", ...
std::optional<DType> dtype_from_name(std::string_view name);  // accepts f32, fp32, float32, ...

float float_from_bfloat16(uint16_t bits);
float float_from_float16(uint16_t bits);
uint16_t bfloat16_from_float(float value);
uint16_t float16_from_float(float value);

// n elements of a floating `dtype` at `src` (any alignment) as float32, and back.
void widen(const void* src, DType dtype, size_t n, float* dst);
void narrow(const float* src, size_t n, DType dtype, void* dst);

}  // namespace quintet

#endif  // QUINTET_CORE_DTYPE_H_
