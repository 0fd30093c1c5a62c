// The public classes under test, behind one interface: what the tests call is what a user calls.
#ifndef QUINTET_CONFORMANCE_SUBJECT_H_
#define QUINTET_CONFORMANCE_SUBJECT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/checkpoint_maker.h"
#include "quintet/device_map.h"
#include "quintet/encoder.h"
#include "quintet/language_model.h"

namespace quintet::conformance {

struct Inputs {
  std::vector<std::vector<int64_t>> ids;
  std::vector<std::vector<uint8_t>> mask = {};         // empty: none
  std::vector<std::vector<int64_t>> decoder_ids = {};  // for models with both stacks
};

using Rows = std::vector<std::vector<float>>;                   // of each sequence
using Generated = std::vector<std::vector<GeneratedSequence>>;  // of each sequence, best first

// A loaded model of one class.
class Subject {
 public:
  virtual ~Subject() = default;
  // Of a stack that the class lacks the map is empty.
  virtual void parallelize(const StackMaps& maps) = 0;
  virtual void deparallelize() = 0;
  virtual bool is_parallel() const = 0;
  virtual StackMaps maps() const = 0;
  virtual std::vector<DeviceMemory> memory() const = 0;
  // Last hidden states, or logits of classes with a head.
  virtual Rows forward(const Inputs& inputs) = 0;
  // Only of classes that generate.
  virtual Generated generate(const Inputs& inputs, const GenerationOptions& options) = 0;
};

struct ModelClass {
  std::string_view name;
  std::string_view short_name;  // in a table, below the family's
  Family family;
  bool has_encoder;
  bool has_decoder;
  bool generates;
  std::unique_ptr<Subject> (*load)(const std::string& folder, const LoadOptions& options);

  // Blocks of a stack in this class of that checkpoint; 0: the class has no such stack.
  int64_t n_encoder_layers(const MadeCheckpoint& made) const {
    return has_encoder ? made.n_encoder_layers : 0;
  }
  int64_t n_decoder_layers(const MadeCheckpoint& made) const {
    return has_decoder ? made.n_decoder_layers : 0;
  }
};

const std::vector<ModelClass>& model_classes();

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_SUBJECT_H_
