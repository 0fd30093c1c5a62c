#include "engine/inspect.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "core/error.h"
#include "core/human.h"
#include "engine/generation_model.h"
#include "engine/loaded_encoder.h"
#include "engine/named_files.h"
#include "tokenizer/protein.h"
#include "tokenizer/tokenizer.h"

namespace quintet {
namespace {

using nlohmann::ordered_json;
using Facts = std::vector<std::pair<std::string, std::string>>;

std::string preset_text(ProteinPreset preset) {
  switch (preset) {
    case ProteinPreset::kProtT5:
      return "a piece per residue, with word marks (prott5)";
    case ProteinPreset::kAnkh:
      return "a piece per residue (ankh)";
    default:
      return "none";
  }
}

Facts tokenizer_facts(const std::string& folder) {
  Facts facts;
  try {
    const auto tokenizer = load_tokenizer(folder);
    facts.emplace_back("tokenizer", fmt::format("{} tokens", tokenizer->vocab_size()));
    facts.emplace_back("protein preset", preset_text(detect_preset(*tokenizer)));
  } catch (const Error& error) {
    facts.emplace_back("tokenizer", error.what());
  }
  return facts;
}

}  // namespace

std::string devices_text(bool json, std::vector<std::string>* notes) {
  const std::vector<DeviceInfo> devices = list_devices(notes);
  if (json) {
    ordered_json list = ordered_json::array();
    for (const DeviceInfo& device : devices) {
      list.push_back({{"name", device.name},
                      {"description", device.description},
                      {"cores", device.n_cores},
                      {"total_bytes", device.total_bytes},
                      {"free_bytes", device.free_bytes}});
    }
    // What a driver calls itself need not be UTF-8.
    return list.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  }
  size_t width = 0;
  for (const DeviceInfo& device : devices) width = std::max(width, device.name.size());
  std::string text;
  for (const DeviceInfo& device : devices) {
    text += fmt::format("{:<{}}  {}, {} free\n", device.name, width, device.description,
                        human_bytes(static_cast<double>(device.free_bytes)));
  }
  return text;
}

std::string checkpoint_text(const std::string& folder, bool json, bool verbose) {
  check_model_folder("info", folder);
  Facts facts;
  std::vector<std::string> notes;
  const auto add_stack = [&](const char* stack, DType dtype, const StackCost& cost) {
    int64_t bytes = cost.first_bytes + cost.last_bytes + cost.per_stage_bytes - cost.shared_bytes;
    for (const BlockCost& block : cost.blocks) bytes += block.weight_bytes;
    facts.emplace_back("stored as", name_of(dtype));
    facts.emplace_back(fmt::format("{} in memory", stack), human_bytes(bytes));
  };
  std::unique_ptr<Checkpoint> checkpoint;
  if (is_decoder_alone(folder)) {
    GenerationFolder opened = GenerationFolder::open(folder);
    const DecoderModel& model = *opened.decoder;
    checkpoint = std::move(opened.checkpoint);
    facts = model.describe();
    add_stack("decoder", model.stored_dtype(*checkpoint),
              model.cost(*checkpoint, model.stored_dtype(*checkpoint), true));
    notes = std::move(opened.notes);
  } else {
    EncoderFolder opened = EncoderFolder::open(folder);
    const EncoderModel& model = *opened.model;
    checkpoint = std::move(opened.checkpoint);
    facts = model.describe();
    const DType dtype = model.stored_dtype(*checkpoint);
    add_stack("encoder", dtype, model.cost(dtype));
    notes = std::move(opened.notes);
  }
  facts.emplace_back("weights", checkpoint->format());
  facts.emplace_back("tensors", fmt::format("{}", checkpoint->tensors().size()));
  facts.emplace_back("files", human_bytes(static_cast<double>(checkpoint->file_bytes())));
  std::ranges::move(tokenizer_facts(folder), std::back_inserter(facts));
  if (verbose) {
    for (const auto& line : notes) facts.emplace_back("note", line);
  }
  if (json) {
    ordered_json object;
    for (const auto& [key, value] : facts) {
      const bool whole = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
      if (key == "note") continue;
      if (whole) {
        object[key] = std::stoll(value);
      } else {
        object[key] = value;
      }
    }
    if (!notes.empty()) object["notes"] = notes;
    return object.dump(2) + "\n";
  }
  size_t width = 0;
  for (const auto& [key, value] : facts) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : facts) text += fmt::format("{:<{}}  {}\n", key, width, value);
  return text;
}

}  // namespace quintet
