// One test of one class: the devices and the checkpoint it works with, and what it finds. A test
// goes on after a finding, so that a report shows all there is.
#ifndef QUINTET_CONFORMANCE_CELL_H_
#define QUINTET_CONFORMANCE_CELL_H_

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/checkpoint_maker.h"
#include "conformance/device_set.h"
#include "conformance/layouts.h"
#include "conformance/result.h"
#include "conformance/subject.h"
#include "quintet/error.h"

namespace quintet::conformance {

// Thrown by a test that has nothing to test here.
class Skipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How alike results must be.
enum class Likeness {
  kBits,      // equal bits
  kAsDevices  // equal bits where all devices are of one kind, else within the spec's tolerance
};

class Cell {
 public:
  Cell(const DeviceSet& set, const ModelClass& model_class, const MadeCheckpoint& made)
      : set_(set), model_class_(model_class), made_(made), names_(set.names()) {}

  const DeviceSet& set() const { return set_; }
  const ModelClass& model_class() const { return model_class_; }
  const MadeCheckpoint& made() const { return made_; }
  const std::vector<std::string>& names() const { return names_; }  // of the devices
  const std::string& first() const { return names_.front(); }
  int64_t n_encoder_layers() const { return model_class_.n_encoder_layers(made_); }
  int64_t n_decoder_layers() const { return model_class_.n_decoder_layers(made_); }
  bool one_map_fits() const;  // every stack: there is one, or they are equally deep
  StackMaps whole(const std::string& device) const;
  StackMaps even() const;
  std::vector<Layout> layouts() const;

  [[noreturn]] static void skip(const std::string& reason) { throw Skipped(reason); }
  void need_two_devices() const;
  void need_generation() const;

  // The model. Small micro-batches, so that several are under way.
  std::unique_ptr<Subject> load() const { return load_on(first()); }
  std::unique_ptr<Subject> load_on(const std::string& device, const std::string& dtype = "") const;
  std::unique_ptr<Subject> load_with(const DeviceMap& device_map) const;

  // Bytes in use on each device of the set.
  std::vector<size_t> bytes() const;
  std::vector<size_t> settled_bytes() const;  // once they have not changed for a moment
  // What a thread drops after its last call may take a moment to go.
  void expect_bytes(const std::string& what, const std::vector<size_t>& expected);

  void expect(bool holds, const std::string& what, const std::string& expected,
              const std::string& found);
  template <typename Value>
  void equal(const std::string& what, const Value& expected, const Value& found) {
    expect(expected == found, what, fmt::format("{}", expected), fmt::format("{}", found));
  }
  void equal_maps(const std::string& what, const StackMaps& expected, const StackMaps& found);
  // That the call throws an Error of this kind whose message holds each of the parts.
  void expect_error(const std::string& what, ErrorKind kind, const std::vector<std::string>& parts,
                    const std::function<void()>& call);

  // Finite numbers that are not all the same.
  void expect_sound(const std::string& what, const Rows& rows);
  void equal_rows(const std::string& what, const Rows& expected, const Rows& found,
                  Likeness likeness);
  void within(const std::string& what, const Rows& expected, const Rows& found, double tolerance);
  void equal_generated(const std::string& what, const Generated& expected, const Generated& found,
                       Likeness likeness);

  CellResult& result() { return result_; }

 private:
  const DeviceSet& set_;
  const ModelClass& model_class_;
  const MadeCheckpoint& made_;
  std::vector<std::string> names_;
  CellResult result_;

  std::unique_ptr<Subject> load(LoadOptions options) const;
};

std::string_view error_kind_name(ErrorKind kind);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_CELL_H_
