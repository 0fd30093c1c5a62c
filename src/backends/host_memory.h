// The main memory that this process may have: the machine's, or less where its cgroup says so.
#ifndef QUINTET_BACKENDS_HOST_MEMORY_H_
#define QUINTET_BACKENDS_HOST_MEMORY_H_

#include <cstddef>
#include <filesystem>

namespace quintet {

struct HostMemory {
  size_t total = 0;  // bytes that this process may have in all
  size_t free = 0;   // of these, what can still be had; the system would drop file caches for it
};

// Read anew. Limits of cgroup v2 and v1, of this process's group and of all groups above it, count.
HostMemory host_memory();

// The same from folders laid out like /proc and /sys/fs/cgroup.
HostMemory host_memory(const std::filesystem::path& proc, const std::filesystem::path& cgroups);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_HOST_MEMORY_H_
