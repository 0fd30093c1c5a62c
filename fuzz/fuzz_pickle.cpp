// The pickle of a state dict, without a container around it.
#include <cstdint>
#include <span>

#include "core/error.h"
#include "weights/torch_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    quintet::read_torch_state(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const quintet::Error&) {  // refused, as it should be
  }
  return 0;
}
