// The errors of device maps: kind and words, and that the model is as it was after each.
#include <algorithm>
#include <numeric>

#include "conformance/inputs.h"
#include "conformance/suite.h"

namespace quintet::conformance {
namespace {

struct BadMap {
  std::string what;
  DeviceMap map;
  ErrorKind kind;
  std::vector<std::string> parts;  // of the message
};

std::vector<int64_t> blocks_to(int64_t n_layers) {
  std::vector<int64_t> blocks(static_cast<size_t>(n_layers));
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

std::vector<BadMap> bad_maps(const Cell& cell, int64_t n_layers) {
  const std::string& first = cell.first();
  const std::string& last = cell.names().back();
  const std::vector<int64_t> all = blocks_to(n_layers);
  const auto changed = [&](const auto& change) {
    std::vector<int64_t> blocks = all;
    change(blocks);
    return blocks;
  };
  const std::string missing = fmt::format("missing blocks: {}", n_layers - 1);
  const std::string unknown = kind_of(first) + ":4096";
  std::vector<BadMap> maps = {
      {"a duplicate block",
       {{first, changed([](auto& b) { b.insert(b.begin(), 0); })}},
       ErrorKind::kUsage,
       {"duplicate blocks: 0"}},
      {"a missing block",
       {{first, changed([](auto& b) { b.pop_back(); })}},
       ErrorKind::kUsage,
       {missing}},
      {"an extra block",
       {{first, changed([&](auto& b) { b.push_back(n_layers); })}},
       ErrorKind::kUsage,
       {fmt::format("extra blocks: {}", n_layers)}},
      {"a block below 0",
       {{first, changed([](auto& b) { b.insert(b.begin(), -1); })}},
       ErrorKind::kUsage,
       {"extra blocks: -1"}},
      {"all three at once",
       {{first, changed([](auto& b) { b.back() = 77, b[1] = 0, b.push_back(1); })}},
       ErrorKind::kUsage,
       {"duplicate blocks: 0", missing, "extra blocks: 77"}},
      {"blocks that do not rise",
       {{first, changed([](auto& b) { std::swap(b[0], b[1]); })}},
       ErrorKind::kUsage,
       {"one run", first}},
      {"a device of a kind that is not there",
       {{"nosuchkind:0", all}},
       ErrorKind::kDevice,
       {"nosuchkind:0"}},
      {"a device that the kind does not have", {{unknown, all}}, ErrorKind::kDevice, {unknown}},
      {"a device without a name", {{"", all}}, ErrorKind::kDevice, {}},
  };
  if (first == last) return maps;
  const std::vector<int64_t> even_blocks = {0, 2};
  maps.push_back({"a run with gaps",
                  {{first, even_blocks},
                   {last, changed([](auto& b) { b.erase(b.begin() + 2), b.erase(b.begin()); })}},
                  ErrorKind::kUsage,
                  {"one run", "such as"}});
  maps.push_back({"a block on two devices",
                  {{first, all}, {last, {0}}},
                  ErrorKind::kUsage,
                  {"duplicate blocks: 0"}});
  maps.push_back({"an unknown device beside one that is there",
                  {{first, {0}}, {unknown, changed([](auto& b) { b.erase(b.begin()); })}},
                  ErrorKind::kDevice,
                  {unknown}});
  maps.push_back({"a device twice",
                  {{first, {0}}, {first, changed([](auto& b) { b.erase(b.begin()); })}},
                  ErrorKind::kUsage,
                  {first, "twice"}});
  return maps;
}

// A model that must stay as it is: what it was, and that it still is.
class Unchanged {
 public:
  Unchanged(Cell& cell, Subject& model)
      : cell_(cell),
        model_(model),
        inputs_(one_of(test_inputs(cell.made()), 0)),
        maps_(model.maps()),
        rows_(model.forward(inputs_)),
        bytes_(cell.bytes()) {}

  void check(const std::string& what) {
    cell_.equal_maps("after " + what, maps_, model_.maps());
    cell_.equal_rows("after " + what, rows_, model_.forward(inputs_), Likeness::kBits);
    cell_.expect_bytes("after " + what, bytes_);
  }

 private:
  Cell& cell_;
  Subject& model_;
  Inputs inputs_;
  StackMaps maps_;
  Rows rows_;
  std::vector<size_t> bytes_;
};

// Each stack of the model with this map, the other one with a good one.
struct Attempt {
  std::string stack;  // as messages name it; empty where there is one stack
  StackMaps maps;
};
std::vector<Attempt> attempts(const Cell& cell, const DeviceMap& encoder_map,
                              const DeviceMap& decoder_map) {
  const StackMaps good = cell.whole(cell.first());
  if (good.decoder.empty()) return {{"", {.encoder = encoder_map, .decoder = {}}}};
  if (good.encoder.empty()) return {{"", {.encoder = {}, .decoder = decoder_map}}};
  return {{"encoder", {.encoder = encoder_map, .decoder = good.decoder}},
          {"decoder", {.encoder = good.encoder, .decoder = decoder_map}}};
}

void refuse_bad_maps(Cell& cell, Subject& model, const std::string& state) {
  Unchanged unchanged(cell, model);
  const auto for_encoder = bad_maps(cell, std::max<int64_t>(cell.n_encoder_layers(), 4));
  const auto for_decoder = bad_maps(cell, std::max<int64_t>(cell.n_decoder_layers(), 4));
  for (size_t i = 0; i < for_encoder.size(); ++i) {
    for (const Attempt& attempt : attempts(cell, for_encoder[i].map, for_decoder[i].map)) {
      const BadMap& bad = attempt.stack == "encoder" || cell.n_decoder_layers() == 0
                              ? for_encoder[i]
                              : for_decoder[i];
      const std::string what = fmt::format("{}: {}{}{}", state, bad.what,
                                           attempt.stack.empty() ? "" : ", ", attempt.stack);
      std::vector<std::string> parts = bad.parts;
      if (bad.kind == ErrorKind::kUsage && !attempt.stack.empty()) {
        parts.push_back(attempt.stack + " device map");
      }
      cell.expect_error(what, bad.kind, parts, [&] { model.parallelize(attempt.maps); });
      unchanged.check(what);
    }
  }
}

}  // namespace

void check_zero_devices(Cell& cell) {
  for (const int64_t n_layers : {cell.n_encoder_layers(), cell.n_decoder_layers()}) {
    if (n_layers == 0) continue;
    cell.expect_error("get_device_map() over no devices", ErrorKind::kUsage, {"no devices"},
                      [&] { get_device_map(n_layers, {}); });
  }
  cell.expect_error("get_device_map() of no blocks", ErrorKind::kUsage, {"0 blocks"},
                    [&] { get_device_map(0, cell.names()); });
  const auto model = cell.load();
  Unchanged unchanged(cell, *model);
  for (const Attempt& attempt : attempts(cell, {}, {})) {
    cell.expect_error("parallelize() with an empty map", ErrorKind::kUsage,
                      {"is empty", attempt.stack}, [&] { model->parallelize(attempt.maps); });
    unchanged.check("an empty map");
  }
  const std::vector<size_t> before = cell.bytes();
  cell.expect_error("loading with an empty map", ErrorKind::kUsage, {"is empty"},
                    [&] { cell.load_with(DeviceMap{}); });
  cell.expect_bytes("after loading failed", before);
}

void check_more_devices_than_blocks(Cell& cell) {
  const int64_t deepest = std::max(cell.n_encoder_layers(), cell.n_decoder_layers());
  std::vector<std::string> devices = cell.names();
  for (int64_t i = 0; i < deepest; ++i) devices.push_back(fmt::format("spare:{}", i));
  for (const int64_t n_layers : {cell.n_encoder_layers(), cell.n_decoder_layers()}) {
    if (n_layers == 0) continue;
    const DeviceMap map = get_device_map(n_layers, devices);
    cell.equal(fmt::format("get_device_map({}, {} devices): devices", n_layers, devices.size()),
               static_cast<size_t>(n_layers), map.size());
    for (size_t i = 0; i < map.size(); ++i) {
      cell.equal(fmt::format("device {}", i), devices[i], map[i].first);
      cell.equal(fmt::format("blocks of device {}", i), size_t{1}, map[i].second.size());
    }
  }
  const auto model = cell.load();
  Unchanged unchanged(cell, *model);
  const auto with_empty = [&](int64_t n_layers) {
    const std::string idle = cell.names().size() > 1 ? cell.names().back() : "spare:0";
    return DeviceMap{{cell.first(), blocks_to(n_layers)}, {idle, {}}};
  };
  for (const Attempt& attempt :
       attempts(cell, with_empty(cell.n_encoder_layers()), with_empty(cell.n_decoder_layers()))) {
    cell.expect_error("a map that gives a device no blocks", ErrorKind::kUsage,
                      {"without blocks", attempt.stack}, [&] { model->parallelize(attempt.maps); });
    unchanged.check("a map that gives a device no blocks");
  }
}

void check_bad_maps(Cell& cell) {
  const std::vector<size_t> before = cell.bytes();
  {
    const auto model = cell.load();
    refuse_bad_maps(cell, *model, "on one device");
    if (cell.names().size() > 1) {
      model->parallelize(cell.even());
      refuse_bad_maps(cell, *model, "split");
    }
  }
  cell.expect_bytes("after the model was destroyed", before);
  const int64_t n_layers =
      cell.n_encoder_layers() > 0 ? cell.n_encoder_layers() : cell.n_decoder_layers();
  for (const BadMap& bad : bad_maps(cell, n_layers)) {
    // Where the depths differ, the other stack's map is wrong, too, and told of first.
    if (bad.kind == ErrorKind::kDevice && !cell.one_map_fits()) continue;
    cell.expect_error("loading with " + bad.what, bad.kind, bad.parts,
                      [&] { cell.load_with(bad.map); });
    cell.expect_bytes("after loading with " + bad.what, before);
  }
}

}  // namespace quintet::conformance
