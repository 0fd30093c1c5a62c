// Block numbers as text, {0, 1, 2, 5} -> "0-2, 5", and as lists.
#ifndef QUINTET_PLACEMENT_BLOCK_RANGES_H_
#define QUINTET_PLACEMENT_BLOCK_RANGES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace quintet {

std::string block_ranges(const std::vector<int64_t>& rising);
std::string block_range(int64_t first, int64_t one_past_last);  // "0-11", "3", "none"
std::vector<int64_t> block_list(int64_t first, int64_t one_past_last);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_BLOCK_RANGES_H_
