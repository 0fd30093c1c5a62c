// A file of torch.save, zip or legacy.
#include "tensor_file_check.h"
#include "weights/torch_legacy.h"
#include "weights/torch_zip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const bool is_zip = quintet::is_torch_zip(std::as_bytes(std::span(data, size)));
  quintet::check_weights(is_zip ? quintet::parse_torch_zip : quintet::parse_torch_legacy, data,
                         size);
  return 0;
}
