// What models hold on devices, and that it goes with them.
#include <algorithm>

#include "conformance/inputs.h"
#include "conformance/suite.h"

namespace quintet::conformance {
namespace {

// Everything that a user may do with a loaded model.
void use(const Cell& cell, Subject& model) {
  const Inputs inputs = test_inputs(cell.made());
  model.forward(inputs);
  if (!cell.model_class().generates) return;
  for (const Search& search : searches()) model.generate(inputs, search.options);
}

// A model keeps the work buffers of the largest batch so far; a second use adds nothing.
void use_twice(Cell& cell, const std::string& what, Subject& model) {
  use(cell, model);
  const std::vector<size_t> once = cell.settled_bytes();
  use(cell, model);
  cell.expect_bytes(what + ", used twice instead of once", once);
}

// What the model itself says, against what its devices hold more than before.
void expect_told(Cell& cell, const std::string& what, const Subject& model,
                 const std::vector<size_t>& before) {
  const std::vector<size_t> now = cell.bytes();
  for (const DeviceMemory& told : model.memory()) {
    const auto at = std::ranges::find(cell.names(), told.device) - cell.names().begin();
    if (static_cast<size_t>(at) == now.size()) {
      cell.expect(false, what + ": memory()", "the devices of the map", told.device);
      continue;
    }
    const auto i = static_cast<size_t>(at);
    cell.equal(fmt::format("{}: bytes on {} as memory() tells", what, told.device),
               now[i] - before[i], told.used);
  }
}

// Bytes that the whole model takes on each of the devices.
std::vector<size_t> whole_bytes(Cell& cell, const std::vector<size_t>& before) {
  const MadeCheckpoint& made = cell.made();
  const size_t least = (cell.model_class().has_encoder ? made.encoder_bytes : 0) +
                       (cell.model_class().has_decoder ? made.decoder_bytes : 0);
  std::vector<size_t> whole;
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string& device = cell.names()[i];
    const auto model = cell.load_on(device);
    whole.push_back(cell.bytes()[i] - before[i]);
    cell.expect(whole[i] >= least, fmt::format("whole on {}: bytes in use", device),
                fmt::format("at least the {} of its blocks", least), fmt::format("{}", whole[i]));
    std::vector<size_t> others = before;
    others[i] += whole[i];
    cell.expect_bytes(fmt::format("whole on {}", device), others);
  }
  cell.expect_bytes("after a model was destroyed", before);
  return whole;
}

void expect_parts(Cell& cell, const std::string& what, const std::vector<size_t>& before,
                  const std::vector<size_t>& whole, const StackMaps& maps) {
  const std::vector<size_t> now = cell.bytes();
  for (size_t i = 0; i < now.size(); ++i) {
    const std::string& device = cell.names()[i];
    const auto holds = [&](const DeviceMap& map) {
      return std::ranges::any_of(map, [&](const auto& entry) { return entry.first == device; });
    };
    const size_t part = now[i] - before[i];
    const std::string where = fmt::format("{}: bytes in use on {}", what, device);
    if (holds(maps.encoder) || holds(maps.decoder)) {
      cell.expect(part > 0 && part < whole[i], where,
                  fmt::format("a part of the model, less than its {}", whole[i]),
                  fmt::format("{}", part));
    } else {
      cell.equal(where, size_t{0}, part);
    }
  }
}

}  // namespace

void check_model_parallelization(Cell& cell) {
  cell.need_two_devices();
  const std::vector<size_t> before = cell.bytes();
  const std::vector<size_t> whole = whole_bytes(cell, before);
  std::vector<size_t> on_first = before;
  on_first[0] += whole[0];

  auto model = cell.load();
  cell.expect_bytes("on one device", on_first);
  expect_told(cell, "on one device", *model, before);
  use_twice(cell, "on one device", *model);
  cell.equal("on one device: is_parallel()", false, model->is_parallel());

  model->parallelize(cell.even());
  expect_parts(cell, "after parallelize()", before, whole, cell.even());
  expect_told(cell, "after parallelize()", *model, before);
  cell.equal("after parallelize(): is_parallel()", true, model->is_parallel());
  use_twice(cell, "after parallelize()", *model);

  model->deparallelize();
  cell.expect_bytes("after deparallelize()", on_first);
  cell.equal_maps("after deparallelize()", cell.whole(cell.first()), model->maps());
  cell.equal("after deparallelize(): is_parallel()", false, model->is_parallel());

  model->parallelize(cell.even());
  model.reset();
  cell.expect_bytes("after a split model was destroyed", before);
}

void check_parallelize_twice(Cell& cell) {
  cell.need_two_devices();
  const std::vector<size_t> before = cell.bytes();
  const Inputs inputs = test_inputs(cell.made());
  auto model = cell.load();
  const Rows expected = model->forward(inputs);
  model->parallelize(cell.even());
  const std::vector<size_t> split = cell.bytes();
  for (const Layout& layout : cell.layouts()) {
    model->parallelize(layout.maps);
    model->parallelize(layout.maps);
  }
  model->parallelize(cell.even());
  cell.expect_bytes("after many splits, the same as after one", split);
  cell.equal_maps("after many splits", cell.even(), model->maps());
  cell.equal_rows("after many splits", expected, model->forward(inputs), Likeness::kAsDevices);
  model->deparallelize();
  model->deparallelize();
  cell.equal_rows("after deparallelize() twice", expected, model->forward(inputs), Likeness::kBits);
  model.reset();
  cell.expect_bytes("after the model was destroyed", before);
}

void check_two_models(Cell& cell) {
  const std::vector<size_t> before = cell.bytes();
  const Inputs inputs = test_inputs(cell.made());
  auto first = cell.load();
  const std::vector<size_t> one = cell.bytes();
  auto second = cell.load();
  std::vector<size_t> both = one;
  both[0] += one[0] - before[0];
  cell.expect_bytes("with two models", both);
  const Rows expected = first->forward(inputs);
  second->parallelize(cell.even());
  cell.equal_rows("the first, while the second is split", expected, first->forward(inputs),
                  Likeness::kBits);
  cell.equal_rows("the second, split", expected, second->forward(inputs), Likeness::kAsDevices);
  first->parallelize(cell.even());
  const Rows split = second->forward(inputs);
  first.reset();
  cell.equal_rows("the second, after the first was destroyed", split, second->forward(inputs),
                  Likeness::kBits);
  second->deparallelize();
  cell.expect_bytes("with the second alone", one);
  second.reset();
  cell.expect_bytes("after both were destroyed", before);
}

}  // namespace quintet::conformance
