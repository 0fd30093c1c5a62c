// What a kind of devices offers beside its ops.
#include <algorithm>

#include "conformance/inputs.h"
#include "conformance/suite.h"

namespace quintet::conformance {
namespace {

void need_hook(bool offered, const char* name) {
  if (!offered) Cell::skip(fmt::format("the spec offers no {}", name));
}

// Kinds of the devices on which the model lies: what is not in use need not answer.
std::vector<std::string> kinds_of(const Subject& model) {
  std::vector<std::string> kinds;
  for (const DeviceMemory& device : model.memory()) {
    const std::string kind = kind_of(device.device);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

void seed_all(Cell& cell, const Subject& model, uint64_t seed) {
  for (const std::string& kind : kinds_of(model)) {
    cell.equal(fmt::format("manual_seed(\"{}\", {})", kind, seed), true, manual_seed(kind, seed));
  }
}

}  // namespace

void check_manual_seed(Cell& cell) {
  need_hook(cell.set().hooks.manual_seed, "manual_seed");
  cell.need_generation();
  const Inputs inputs = test_inputs(cell.made());
  const auto model = cell.load();
  seed_all(cell, *model, 7);
  const Generated samples = model->generate(inputs, sampling(7));
  seed_all(cell, *model, 7);
  cell.equal_generated("the same seed again", samples, model->generate(inputs, sampling(7)),
                       Likeness::kBits);
  seed_all(cell, *model, 8);
  const Generated others = model->generate(inputs, sampling(8));
  const bool same = std::ranges::equal(samples, others, [](const auto& a, const auto& b) {
    return std::ranges::equal(
        a, b, [](const auto& first, const auto& second) { return first.ids == second.ids; });
  });
  cell.expect(!same, "another seed", "other samples", "the same samples");
  if (cell.names().size() < 2) return;
  model->parallelize(cell.even());
  seed_all(cell, *model, 7);
  cell.equal_generated("the same seed, split", samples, model->generate(inputs, sampling(7)),
                       Likeness::kAsDevices);
}

void check_empty_cache(Cell& cell) {
  need_hook(cell.set().hooks.empty_cache, "empty_cache");
  const Inputs inputs = test_inputs(cell.made());
  const std::vector<size_t> before = cell.bytes();
  auto model = cell.load();
  model->parallelize(cell.even());
  const Rows rows = model->forward(inputs);
  const std::vector<size_t> used = cell.settled_bytes();
  for (const std::string& kind : kinds_of(*model)) {
    cell.equal(fmt::format("empty_cache(\"{}\")", kind), true, empty_cache(kind));
  }
  cell.expect_bytes("after empty_cache(), what is in use", used);
  cell.equal_rows("after empty_cache()", rows, model->forward(inputs), Likeness::kBits);
  model.reset();
  for (const std::string& kind : cell.set().kinds) empty_cache(kind);
  cell.expect_bytes("after the model was destroyed", before);
}

void check_device_count(Cell& cell) {
  need_hook(cell.set().hooks.device_count, "device_count");
  for (const std::string& kind : cell.set().kinds) {
    const std::vector<DeviceInfo> devices = list_devices_of(kind);
    cell.expect(!devices.empty(), fmt::format("devices of kind {}", kind), "at least one", "none");
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string name = fmt::format("{}:{}", kind, i);
      cell.equal(fmt::format("device {} of kind {}", i, kind), name, devices[i].name);
      const DeviceInfo found = find_device(name);
      cell.equal("find_device(): name", name, found.name);
      cell.equal(name + ": description", devices[i].description, found.description);
      cell.equal(name + ": bytes", devices[i].total_bytes, found.total_bytes);
      cell.expect(found.total_bytes > 0, name + ": bytes", "some", "0");
      cell.expect(found.free_bytes <= found.total_bytes, name + ": free bytes",
                  fmt::format("at most {}", found.total_bytes),
                  fmt::format("{}", found.free_bytes));
      cell.expect(!found.hardware.empty(), name + ": hardware", "a text", "none");
    }
    cell.expect_error("the device past the last", ErrorKind::kDevice,
                      {fmt::format("{}:{}", kind, devices.size())},
                      [&] { find_device(fmt::format("{}:{}", kind, devices.size())); });
    const auto listed = list_devices(nullptr);
    for (const DeviceInfo& device : devices) {
      cell.expect(std::ranges::any_of(
                      listed, [&](const DeviceInfo& other) { return other.name == device.name; }),
                  "list_devices()", "a line for " + device.name, "none");
    }
  }
}

}  // namespace quintet::conformance
