// A spec file says which devices the suite runs on, in the manner of the device specs of the
// original library's tests: a device name and which hooks its kind offers.
//
//   {"device_name": "mydev", "module": "./libmydev.so", "manual_seed": true, "device_count": true}
//   {"device_name": ["cpu[0]", "opencl:0/2[1]"], "tolerance": 1e-5}
#ifndef QUINTET_CONFORMANCE_SPEC_H_
#define QUINTET_CONFORMANCE_SPEC_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace quintet::conformance {

// What a kind of devices offers beside its ops; what is not offered is not tested.
struct Hooks {
  bool manual_seed = false;
  bool empty_cache = false;
  bool device_count = false;
};

struct DeviceSpec {
  std::filesystem::path file;        // of the spec, for messages
  std::string kind;                  // empty: a mix
  std::vector<std::string> devices;  // as written; empty: all that there are of the kind
  std::filesystem::path module;      // backend module to load before; empty: none
  Hooks hooks;
  double tolerance = 1e-5;       // largest relative difference between kinds; within one: none
  bool skip_if_missing = false;  // a device that is not there skips the run instead of failing it
};

// `where` begins each message; a relative module is looked up from `folder`. Throws Error(kUsage)
// that names the key, what was found and what was expected.
DeviceSpec parse_device_spec(std::string_view text, const std::string& where,
                             const std::filesystem::path& folder);
DeviceSpec read_device_spec(const std::filesystem::path& file);

// "cpu[0]" -> "cpu", "opencl:0/2[1]" -> "opencl".
std::string kind_of(const std::string& device);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_SPEC_H_
