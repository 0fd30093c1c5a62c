// The ways in which the suite spreads the blocks of a model over devices.
#ifndef QUINTET_CONFORMANCE_LAYOUTS_H_
#define QUINTET_CONFORMANCE_LAYOUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "quintet/device_map.h"

namespace quintet::conformance {

struct Layout {
  std::string name;  // "even", for messages
  StackMaps maps;
};

// Of a stack with 0 blocks the map is empty, here and below.
StackMaps whole_on(const std::string& device, int64_t n_encoder_layers, int64_t n_decoder_layers);
StackMaps even_layout(const std::vector<std::string>& devices, int64_t n_encoder_layers,
                      int64_t n_decoder_layers);

// Even, reversed, uneven, one block on each device (the last one takes the rest), whole on another
// device, and of models with two stacks the stacks apart and crossed. At least two devices.
std::vector<Layout> layouts_over(const std::vector<std::string>& devices, int64_t n_encoder_layers,
                                 int64_t n_decoder_layers);

// The same maps, {"encoder": ..., "decoder": ...}, for messages.
std::string maps_text(const StackMaps& maps);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_LAYOUTS_H_
