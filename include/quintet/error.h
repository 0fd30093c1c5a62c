// The one exception type of the library. Programs turn its kind into an exit code or a status.
#ifndef QUINTET_ERROR_H_
#define QUINTET_ERROR_H_

#include <stdexcept>
#include <string>

namespace quintet {

enum class ErrorKind {
  kUsage,        // an option or argument that cannot be honoured
  kFile,         // a file whose contents are not what its format or the model asks for
  kRecord,       // one input record that cannot be processed
  kIo,           // reading or writing failed: no such file, disk full, broken pipe
  kDevice,       // no such device, or the device failed
  kMemory,       // does not fit; nothing was allocated
  kInterrupted,  // stopped by a signal; what is written can be resumed
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace quintet

#endif  // QUINTET_ERROR_H_
