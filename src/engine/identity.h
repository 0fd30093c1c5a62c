// What a run is made of, as a JSON object: two runs with equal objects write the same output. A
// resumed run must be equal to the one it goes on with.
#ifndef QUINTET_ENGINE_IDENTITY_H_
#define QUINTET_ENGINE_IDENTITY_H_

#include <string>

#include "engine/options.h"
#include "weights/checkpoint.h"

namespace quintet {

// Not in it: devices, maps, threads, batch sizes, which do not change the results. `reading` says
// how records are read ("prott5", "text"); `dtype` is that of the weights in use.
std::string run_identity(const Options& options, const Checkpoint& checkpoint,
                         const std::string& reading, DType dtype);

// The same for `command`, generate or score, whose lines also depend on how tokens are chosen.
std::string generation_identity(const Options& options, const std::string& command,
                                const Checkpoint& checkpoint, const std::string& reading,
                                DType dtype);

}  // namespace quintet

#endif  // QUINTET_ENGINE_IDENTITY_H_
