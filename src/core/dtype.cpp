#include "core/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace quintet {

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kBFloat16:
    case DType::kFloat16:
      return 2;
    case DType::kInt64:
      return 8;
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat16:
      return "float16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      return "uint8";
  }
  return "?";
}

std::optional<DType> dtype_from_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 9> kNames{{
      {"float32", DType::kFloat32},
      {"f32", DType::kFloat32},
      {"fp32", DType::kFloat32},
      {"bfloat16", DType::kBFloat16},
      {"bf16", DType::kBFloat16},
      {"float16", DType::kFloat16},
      {"f16", DType::kFloat16},
      {"fp16", DType::kFloat16},
      {"half", DType::kFloat16},
  }};
  for (const auto& [text, dtype] : kNames) {
    if (text == name) return dtype;
  }
  return std::nullopt;
}

float float_from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float float_from_float16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 0x7F800000U : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

uint16_t bfloat16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
    return static_cast<uint16_t>((bits >> 16) | 0x40U);  // NaN
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

uint16_t float16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return sign | 0x7E00U;   // NaN
  if (magnitude >= 0x477FF000U) return sign | 0x7C00U;  // rounds past 65504
  if (magnitude < 0x38800000U) {                        // subnormal: units of 2^-24, ties to even
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24F;
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  const uint32_t rebased = magnitude - (112U << 23);
  return sign | static_cast<uint16_t>((rebased + 0xFFFU + ((rebased >> 13) & 1U)) >> 13);
}

void widen(const void* src, DType dtype, size_t n, float* dst) {
  if (n == 0) return;  // either pointer may then be null
  const auto* bytes = static_cast<const unsigned char*>(src);
  if (dtype == DType::kFloat32) {
    std::memcpy(dst, src, n * sizeof(float));
    return;
  }
  if (dtype != DType::kBFloat16 && dtype != DType::kFloat16) {
    fail(ErrorKind::kFile, "cannot read {} as floating-point numbers", name_of(dtype));
  }
  for (size_t i = 0; i < n; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, 2);
    dst[i] = dtype == DType::kBFloat16 ? float_from_bfloat16(bits) : float_from_float16(bits);
  }
}

void narrow(const float* src, size_t n, DType dtype, void* dst) {
  if (n == 0) return;
  if (dtype == DType::kFloat32) {
    std::memcpy(dst, src, n * sizeof(float));
    return;
  }
  auto* bytes = static_cast<unsigned char*>(dst);
  for (size_t i = 0; i < n; ++i) {
    const uint16_t bits =
        dtype == DType::kBFloat16 ? bfloat16_from_float(src[i]) : float16_from_float(src[i]);
    std::memcpy(bytes + 2 * i, &bits, 2);
  }
}

}  // namespace quintet
