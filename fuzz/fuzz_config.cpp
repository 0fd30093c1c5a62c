// config.json of any model: refused with an Error, or a model whose costs are sane numbers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/json.h"
#include "models/encoder.h"
#include "quintet/error.h"

using quintet::DType;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto model =
        quintet::make_encoder_model(quintet::parse_json(text, "config.json"), "config.json");
    model->describe();
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const quintet::StackCost cost = model->cost(dtype);
      if (cost.blocks.size() != static_cast<size_t>(model->n_layers())) std::abort();
      if (cost.first_bytes <= 0 || cost.last_bytes <= 0 || cost.d_model <= 0) std::abort();
      int64_t bytes = cost.first_bytes + cost.last_bytes + cost.per_stage_bytes;
      for (const auto& block : cost.blocks) {
        if (block.weight_bytes <= 0 || __builtin_add_overflow(bytes, block.weight_bytes, &bytes)) {
          std::abort();
        }
      }
    }
  } catch (const quintet::Error&) {
  }
  return 0;
}
