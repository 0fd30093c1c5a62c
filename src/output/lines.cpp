// Lines of text, one record's after the other's, as the job made them.
#include "output/formats.h"

namespace quintet {

void write_lines(const Spool& spool, const OutputOptions& /*options*/,
                 const std::filesystem::path& path) {
  BufferedFile file(path);
  std::vector<std::byte> payload;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    spool.read_payload(frame, payload);
    file.write(payload.data(), payload.size());
  });
  file.close();
}

}  // namespace quintet
