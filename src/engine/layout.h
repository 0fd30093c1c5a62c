// Where an encoder will live: from options, config and file headers to a checked device map and its
// plan. Nothing is loaded here; speeds are measured once per machine and cached.
#ifndef QUINTET_ENGINE_LAYOUT_H_
#define QUINTET_ENGINE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/loaded_encoder.h"
#include "engine/options.h"
#include "placement/host_bytes.h"
#include "placement/planner.h"
#include "quintet/device_map.h"

namespace quintet {

struct Layout {
  DType dtype = DType::kFloat32;
  LengthProfile profile;
  PlanContext context;
  std::vector<DeviceSpec> devices;
  DeviceMap map;
  Plan plan;
  HostLoad host;                  // beside the model; without the longest record
  int64_t resident_bytes = 0;     // of the process when the plan was made
  int64_t longest_that_fits = 0;  // tokens of one record, given the map and the memory
};

// What is known of the records to come.
struct ExpectedRecords {
  std::vector<int32_t> lengths;  // tokens of each, or of a sample
  int64_t n_records = 0;         // how many in all; 0: unknown
};

// The first records of --input, tokenised; else --lengths; else 300 tokens. An input that is no
// regular file is read only if `consume` says that nobody else wants to.
ExpectedRecords expected_records(const Options& options, const EncoderModel& model, bool consume);

// That what is to be read is there, and --svg can be written and is none of that. Throws
// Error(kUsage).
void check_plan_files(const Options& options);

// Throws Error(kUsage / kDevice) for devices and maps that cannot be. A plan that does not fit is
// no error here: the caller decides.
Layout make_layout(const EncoderFolder& folder, const Options& options,
                   const ExpectedRecords& expected);

// Not empty: what a record of so many tokens would need, where and how much there is.
std::string why_too_long(const EncoderModel& model, const Layout& layout, int64_t n_tokens);

// Bytes of this process's resident memory, now and at its highest.
int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace quintet

#endif  // QUINTET_ENGINE_LAYOUT_H_
