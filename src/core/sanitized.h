// Whether this build runs under the address sanitizer, which takes memory and time of its own:
// tests that bound either allow for it.
#ifndef QUINTET_CORE_SANITIZED_H_
#define QUINTET_CORE_SANITIZED_H_

namespace quintet {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace quintet

#endif  // QUINTET_CORE_SANITIZED_H_
