// The tests, and running one of them on one class.
#ifndef QUINTET_CONFORMANCE_SUITE_H_
#define QUINTET_CONFORMANCE_SUITE_H_

#include <string_view>
#include <vector>

#include "conformance/cell.h"

namespace quintet::conformance {

struct TestCase {
  std::string_view name;
  std::string_view what;  // that it tests, for people
  void (*run)(Cell& cell);
};

const std::vector<TestCase>& test_cases();

// Never throws: what a test throws is a finding.
CellResult run_cell(const TestCase& test, const DeviceSet& set, const ModelClass& model_class,
                    const MadeCheckpoint& made);

// memory_checks.cpp
void check_model_parallelization(Cell& cell);
void check_parallelize_twice(Cell& cell);
void check_two_models(Cell& cell);
// result_checks.cpp
void check_equal_results(Cell& cell);
void check_reference_results(Cell& cell);
void check_half_precision(Cell& cell);
void check_reload(Cell& cell);
// map_checks.cpp
void check_zero_devices(Cell& cell);
void check_more_devices_than_blocks(Cell& cell);
void check_bad_maps(Cell& cell);
// hook_checks.cpp
void check_manual_seed(Cell& cell);
void check_empty_cache(Cell& cell);
void check_device_count(Cell& cell);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_SUITE_H_
