// A safetensors file.
#include "tensor_file_check.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quintet::check_weights(quintet::parse_safetensors, data, size);
  return 0;
}
