// Random numbers without a state: Philox4x32-10 (Salmon et al. 2011) makes four words from a key
// and a counter, so a draw depends on what it is for and not on what was drawn before.
#ifndef QUINTET_GENERATION_PHILOX_H_
#define QUINTET_GENERATION_PHILOX_H_

#include <array>
#include <cstdint>

namespace quintet {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a number is drawn for.
struct Draw {
  uint64_t seed = 0;
  uint64_t ordinal = 0;  // of the record
  uint32_t lane = 0;     // the sample, or the beam's continuation
  uint32_t step = 0;
};

// A multiple of 2^-53 in [0, 1).
double uniform(const Draw& draw);

}  // namespace quintet

#endif  // QUINTET_GENERATION_PHILOX_H_
