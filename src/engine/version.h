// The version of the library, as CMake's project() states it.
#ifndef QUINTET_ENGINE_VERSION_H_
#define QUINTET_ENGINE_VERSION_H_

namespace quintet {

inline constexpr const char* kVersion = QUINTET_VERSION;

}  // namespace quintet

#endif  // QUINTET_ENGINE_VERSION_H_
