// That results do not depend on where the blocks lie.
#include "conformance/inputs.h"
#include "conformance/suite.h"

namespace quintet::conformance {
namespace {

std::vector<Generated> generate_all(const Cell& cell, Subject& model, const Inputs& inputs) {
  std::vector<Generated> all;
  if (!cell.model_class().generates) return all;
  for (const Search& search : searches()) all.push_back(model.generate(inputs, search.options));
  return all;
}

void equal_all(Cell& cell, const std::string& what, const std::vector<Generated>& expected,
               const std::vector<Generated>& found, Likeness likeness) {
  for (size_t i = 0; i < expected.size(); ++i) {
    cell.equal_generated(fmt::format("{}: {}", what, searches()[i].name), expected[i], found[i],
                         likeness);
  }
}

}  // namespace

void check_equal_results(Cell& cell) {
  cell.need_two_devices();
  const Inputs inputs = test_inputs(cell.made());
  const auto model = cell.load();
  const Rows rows = model->forward(inputs);
  cell.expect_sound("on one device", rows);
  const std::vector<Generated> generated = generate_all(cell, *model, inputs);
  for (const Layout& layout : cell.layouts()) {
    const std::string what = fmt::format("{} {}", layout.name, maps_text(layout.maps));
    model->parallelize(layout.maps);
    cell.equal_maps(what, layout.maps, model->maps());
    const Rows split = model->forward(inputs);
    cell.equal_rows(what, rows, split, Likeness::kAsDevices);
    equal_all(cell, what, generated, generate_all(cell, *model, inputs), Likeness::kAsDevices);
    for (size_t i = 0; i < split.size(); i += 2) {
      cell.equal_rows(fmt::format("{}: sequence {} without the others", what, i), {split[i]},
                      model->forward(one_of(inputs, i)), Likeness::kBits);
    }
  }
  model->parallelize(cell.even());
  model->deparallelize();
  cell.equal_rows("after deparallelize()", rows, model->forward(inputs), Likeness::kBits);
  equal_all(cell, "after deparallelize()", generated, generate_all(cell, *model, inputs),
            Likeness::kBits);
}

void check_reference_results(Cell& cell) {
  const Inputs inputs = test_inputs(cell.made());
  const Rows expected = cell.load_on("reference:0")->forward(inputs);
  for (const std::string& device : cell.names()) {
    const Rows found = cell.load_on(device)->forward(inputs);
    cell.expect_sound(device, found);
    cell.within(device + " against reference:0", expected, found, cell.set().tolerance);
  }
}

void check_half_precision(Cell& cell) {
  const Inputs inputs = test_inputs(cell.made());
  const std::vector<size_t> before = cell.bytes();
  auto model = cell.load();
  const size_t whole = cell.bytes()[0] - before[0];
  const Rows full = model->forward(inputs);
  model.reset();
  for (const char* dtype : {"bfloat16", "float16"}) {
    model = cell.load_on(cell.first(), dtype);
    const size_t half = cell.bytes()[0] - before[0];
    cell.expect(half < whole, fmt::format("{}: bytes in use on {}", dtype, cell.first()),
                fmt::format("less than the {} in float32", whole), fmt::format("{}", half));
    const Rows rows = model->forward(inputs);
    cell.expect_sound(dtype, rows);
    cell.expect(rows != full, dtype, "other numbers than in float32", "the same");
    const Rows expected = cell.load_on("reference:0", dtype)->forward(inputs);
    cell.within(fmt::format("{} against reference:0", dtype), expected, rows, cell.set().tolerance);
    model->parallelize(cell.even());
    cell.equal_rows(fmt::format("{}, split", dtype), rows, model->forward(inputs),
                    Likeness::kAsDevices);
    model.reset();
  }
  cell.expect_bytes("after the models were destroyed", before);
}

void check_reload(Cell& cell) {
  const Inputs inputs = test_inputs(cell.made());
  const std::vector<size_t> before = cell.bytes();
  auto model = cell.load();
  model->parallelize(cell.even());
  const std::vector<size_t> split = cell.bytes();
  const Rows rows = model->forward(inputs);
  model.reset();
  const DeviceMap map = cell.n_encoder_layers() > 0 ? cell.even().encoder : cell.even().decoder;
  if (cell.one_map_fits()) {
    model = cell.load_with(map);
    cell.equal_maps("loaded with a map", cell.even(), model->maps());
    cell.expect_bytes("loaded with a map", split);
  } else {
    cell.expect_error("loaded with one map for stacks of different depth", ErrorKind::kUsage,
                      {"decoder device map"}, [&] { cell.load_with(map); });
    cell.expect_bytes("after loading failed", before);
    model = cell.load();
    model->parallelize(cell.even());
  }
  cell.equal_rows("loaded anew", rows, model->forward(inputs), Likeness::kBits);
  model.reset();
  cell.expect_bytes("after the model was destroyed", before);
}

}  // namespace quintet::conformance
