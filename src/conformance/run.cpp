#include "conformance/run.h"

#include <algorithm>
#include <map>
#include <optional>

#include "conformance/checkpoint_maker.h"
#include "conformance/isolation.h"
#include "conformance/scratch_folder.h"
#include "core/error.h"

namespace quintet::conformance {
namespace {

using nlohmann::json;

struct CellPlan {
  const ModelClass* model_class;
  const TestCase* test;
};

// Those of `all` that are asked for, in their own order.
template <typename Item>
std::vector<const Item*> chosen(const std::vector<Item>& all, const std::vector<std::string>& asked,
                                const char* option, const char* what) {
  std::vector<const Item*> items;
  for (const Item& item : all) {
    if (asked.empty() || std::ranges::find(asked, item.name) != asked.end()) items.push_back(&item);
  }
  for (const std::string& name : asked) {
    if (std::ranges::find(all, name, &Item::name) != all.end()) continue;
    std::string names;
    for (const Item& item : all) names += (names.empty() ? "" : ", ") + std::string(item.name);
    fail(ErrorKind::kUsage, "{} {}: no such {}; there are {}", option, name, what, names);
  }
  return items;
}

std::vector<CellPlan> plan_of(const RunOptions& options) {
  std::vector<CellPlan> cells;
  const auto tests = chosen(test_cases(), options.tests, "--test", "test");
  for (const ModelClass* c : chosen(model_classes(), options.classes, "--only", "class")) {
    for (const TestCase* test : tests) cells.push_back({c, test});
  }
  return cells;
}

}  // namespace

Report run_suite(const RunOptions& options, const Progress& progress) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<CellPlan> cells = plan_of(options);
  const ScratchFolder scratch;
  std::map<Family, MadeCheckpoint> checkpoints;
  for (const CellPlan& cell : cells) {
    const Family family = cell.model_class->family;
    if (!checkpoints.contains(family)) {
      checkpoints.emplace(family, make_checkpoint(family, scratch.path()));
    }
  }
  Report report;
  report.spec = options.spec;
  std::optional<DeviceSet> set;  // of the working process
  IsolatedWork work;
  work.limit = options.limit;
  work.n_items = cells.size();
  work.prepare = [&] {
    set = find_device_set(options.spec);
    auto devices = nlohmann::ordered_json::array();
    for (const DeviceInfo& device : set->devices) devices.push_back(to_json(device));
    return devices.dump();
  };
  work.run = [&](size_t i) {
    const CellResult result = run_cell(*cells[i].test, *set, *cells[i].model_class,
                                       checkpoints.at(cells[i].model_class->family));
    return to_json(result).dump(-1, ' ', false, json::error_handler_t::replace);
  };
  IsolatedEvents events;
  events.ready = [&](const std::string& prepared) {
    for (const json& device : json::parse(prepared)) {
      report.devices.push_back(device_info_from(device));
    }
  };
  events.started = [&](size_t i) {
    progress(i, cells.size(), std::string(cells[i].model_class->name),
             std::string(cells[i].test->name));
  };
  events.done = [&](size_t, const std::string& text) {
    report.results.push_back(cell_result_from(json::parse(text)));
  };
  events.lost = [&](size_t i, const std::string& how, double seconds) {
    report.results.push_back({.model_class = std::string(cells[i].model_class->name),
                              .test = std::string(cells[i].test->name),
                              .outcome = Outcome::kFail,
                              .findings = {{"the test as a whole", "an end", "the process " + how}},
                              .seconds = seconds});
  };
  run_isolated(work, events);
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace quintet::conformance
