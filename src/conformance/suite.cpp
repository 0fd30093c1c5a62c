#include "conformance/suite.h"

#include <chrono>
#include <exception>

namespace quintet::conformance {

const std::vector<TestCase>& test_cases() {
  static const std::vector<TestCase> kTests = {
      {"test_model_parallelization",
       "bytes in use on each device: before, on one device, split, put back, destroyed",
       check_model_parallelization},
      {"test_model_parallel_equal_results",
       "forward and generate give the same before and after each of the splits",
       check_equal_results},
      {"test_zero_devices", "maps over no devices are refused", check_zero_devices},
      {"test_more_devices_than_blocks", "devices without blocks are left out, or refused in a map",
       check_more_devices_than_blocks},
      {"test_bad_maps",
       "duplicate, missing and extra blocks, unknown devices, runs with gaps: told, and the model "
       "stays as it was",
       check_bad_maps},
      {"test_manual_seed", "the same seed gives the same samples, another one others",
       check_manual_seed},
      {"test_empty_cache", "memory kept for reuse is given back, weights and results stay",
       check_empty_cache},
      {"test_device_count", "the devices of the kind are counted and found by name",
       check_device_count},
      {"test_reference_results", "results within the tolerance of the reference device's",
       check_reference_results},
      {"test_half_precision", "equal results with weights in bfloat16 and float16, in less memory",
       check_half_precision},
      {"test_parallelize_twice", "one split after another, without putting back: nothing stays",
       check_parallelize_twice},
      {"test_two_models", "two models on the same devices do not touch each other",
       check_two_models},
      {"test_reload", "loaded with a map: as loaded without and split", check_reload},
  };
  return kTests;
}

CellResult run_cell(const TestCase& test, const DeviceSet& set, const ModelClass& model_class,
                    const MadeCheckpoint& made) {
  const auto started = std::chrono::steady_clock::now();
  Cell cell(set, model_class, made);
  CellResult& result = cell.result();
  try {
    test.run(cell);
  } catch (const Skipped& skipped) {
    result.outcome = Outcome::kSkip;
    result.reason = skipped.what();
  } catch (const Error& error) {
    cell.expect(false, "the test as a whole", "no error",
                fmt::format("kind {}: {}", error_kind_name(error.kind()), error.what()));
  } catch (const std::exception& error) {
    cell.expect(false, "the test as a whole", "no exception", error.what());
  }
  result.model_class = model_class.name;
  result.test = test.name;
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace quintet::conformance
