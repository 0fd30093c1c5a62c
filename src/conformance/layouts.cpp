#include "conformance/layouts.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace quintet::conformance {
namespace {

using Names = std::vector<std::string>;

// Runs of so many blocks on the devices, in order; devices beyond the sizes get none.
DeviceMap runs(const Names& devices, const std::vector<int64_t>& sizes) {
  DeviceMap map;
  int64_t block = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<int64_t> blocks(static_cast<size_t>(sizes[i]));
    std::iota(blocks.begin(), blocks.end(), block);
    block += sizes[i];
    map.emplace_back(devices[i], std::move(blocks));
  }
  return map;
}

// One block on each device, and what is left over on one of them besides.
DeviceMap one_each(const Names& devices, int64_t n_layers, bool rest_first) {
  std::vector<int64_t> sizes(std::min(devices.size(), static_cast<size_t>(n_layers)), 1);
  int64_t& rest = rest_first ? sizes.front() : sizes.back();
  rest += n_layers - static_cast<int64_t>(sizes.size());
  return runs(devices, sizes);
}

StackMaps both(int64_t n_encoder_layers, int64_t n_decoder_layers,
               const std::function<DeviceMap(int64_t n_layers)>& map) {
  return {.encoder = n_encoder_layers == 0 ? DeviceMap{} : map(n_encoder_layers),
          .decoder = n_decoder_layers == 0 ? DeviceMap{} : map(n_decoder_layers)};
}

}  // namespace

StackMaps whole_on(const std::string& device, int64_t n_encoder_layers, int64_t n_decoder_layers) {
  return even_layout({device}, n_encoder_layers, n_decoder_layers);
}

StackMaps even_layout(const Names& devices, int64_t n_encoder_layers, int64_t n_decoder_layers) {
  return both(n_encoder_layers, n_decoder_layers,
              [&](int64_t n_layers) { return get_device_map(n_layers, devices); });
}

std::vector<Layout> layouts_over(const Names& devices, int64_t n_encoder_layers,
                                 int64_t n_decoder_layers) {
  const Names reversed(devices.rbegin(), devices.rend());
  const auto all = [&](const std::function<DeviceMap(int64_t)>& map) {
    return both(n_encoder_layers, n_decoder_layers, map);
  };
  const StackMaps even = even_layout(devices, n_encoder_layers, n_decoder_layers);
  const StackMaps backward = even_layout(reversed, n_encoder_layers, n_decoder_layers);
  const StackMaps last = whole_on(devices.back(), n_encoder_layers, n_decoder_layers);
  std::vector<Layout> layouts = {
      {"even", even},
      {"reversed", backward},
      {"uneven", all([&](int64_t n_layers) { return one_each(devices, n_layers, true); })},
      {"one block each", all([&](int64_t n_layers) { return one_each(devices, n_layers, false); })},
      {"whole on the last device", last},
  };
  if (n_encoder_layers > 0 && n_decoder_layers > 0) {
    const StackMaps first = whole_on(devices.front(), n_encoder_layers, n_decoder_layers);
    layouts.push_back({"stacks apart", {.encoder = last.encoder, .decoder = first.decoder}});
    layouts.push_back({"stacks crossed", {.encoder = even.encoder, .decoder = backward.decoder}});
  }
  return layouts;
}

std::string maps_text(const StackMaps& maps) {
  if (maps.decoder.empty()) return device_map_text(maps.encoder);
  if (maps.encoder.empty()) return device_map_text(maps.decoder);
  return "{\"encoder\":" + device_map_text(maps.encoder) +
         ",\"decoder\":" + device_map_text(maps.decoder) + "}";
}

}  // namespace quintet::conformance
