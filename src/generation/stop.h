// When a sequence has ended: an eos token, a stop string, the greatest length.
#ifndef QUINTET_GENERATION_STOP_H_
#define QUINTET_GENERATION_STOP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generation/generation_config.h"
#include "generation/search.h"

namespace quintet {

class StopRule {
 public:
  // Throws Error(kUsage) for stop strings without input.decode.
  StopRule(const GenerationConfig& config, const SearchInput& input);

  // Whether a sequence ends with its last token: that one is an eos, or it completes a stop string.
  // A stop string may begin in the prompt, as in the reference.
  bool ends(std::span<const int32_t> ids) const;

 private:
  bool completes_stop_string(std::span<const int32_t> ids) const;

  std::vector<int64_t> eos_;
  std::vector<std::string> stop_strings_;
  size_t longest_ = 0;  // stop string, in bytes
  std::function<std::string(std::span<const int32_t>)> decode_;
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_STOP_H_
