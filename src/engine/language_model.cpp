// The public classes that generate: a loaded model and a ring that stays up between calls.
#include "quintet/language_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/registry.h"
#include "core/error.h"
#include "core/json.h"
#include "engine/forward_batch.h"
#include "engine/generation_model.h"
#include "engine/sequence.h"
#include "generation/generation_config.h"
#include "generation/generator.h"

namespace quintet {
namespace {

using nlohmann::json;

DeviceMap canonical(const DeviceMap& given) {
  DeviceMap map = given;
  for (auto& [name, blocks] : map) {
    name = canonical_device_name(name);
    std::ranges::sort(blocks);
  }
  return map;
}

json values_of(const GenerationOptions& options) {
  json values = options.more.empty() ? json::object() : parse_json(options.more, "options.more");
  const auto put = [&](const char* name, const auto& value) {
    if (value) values[name] = *value;
  };
  put("max_new_tokens", options.max_new_tokens);
  put("min_new_tokens", options.min_new_tokens);
  put("max_length", options.max_length);
  put("num_beams", options.num_beams);
  put("num_return_sequences", options.num_return_sequences);
  put("do_sample", options.do_sample);
  put("temperature", options.temperature);
  put("top_k", options.top_k);
  put("top_p", options.top_p);
  put("repetition_penalty", options.repetition_penalty);
  put("no_repeat_ngram_size", options.no_repeat_ngram_size);
  put("length_penalty", options.length_penalty);
  put("seed", options.seed);
  return values;
}

}  // namespace

struct PretrainedLanguageModel::Impl {
  std::string path;
  GenerationFolder folder;
  LoadOptions options;
  DType dtype = DType::kFloat32;
  StackMaps maps;
  std::unique_ptr<LoadedGenerationModel> loaded;
  std::unique_ptr<Ring> ring;  // borrows the devices of `loaded`

  int64_t n_encoder_layers() const {
    return folder.encoder == nullptr ? 0 : folder.encoder->n_layers();
  }

  const std::string& first_device() const {
    return (maps.encoder.empty() ? maps.decoder : maps.encoder).front().first;
  }

  // Checks the maps first; from then on the old weights are gone, as both may not fit.
  void place(const DeviceMap& encoder_map, const DeviceMap& decoder_map) {
    if (folder.encoder != nullptr) {
      assert_device_map(encoder_map, n_encoder_layers(), "encoder");
    } else if (!encoder_map.empty()) {
      fail(ErrorKind::kUsage, "the model has no encoder to be laid out");
    }
    assert_device_map(decoder_map, folder.decoder->n_layers(),
                      folder.encoder == nullptr ? "" : "decoder");
    StackMaps named{.encoder = canonical(encoder_map), .decoder = canonical(decoder_map)};
    std::vector<std::string> names;
    for (const DeviceMap* map : {&named.encoder, &named.decoder}) {
      for (const auto& [name, blocks] : *map) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    check_device_list(names);
    ring.reset();
    loaded.reset();
    loaded = std::make_unique<LoadedGenerationModel>(folder, named, dtype,
                                                     OpenOptions{.threads = options.threads});
    ring = loaded->start({});
    maps = std::move(named);
  }

  void place_evenly(const std::vector<std::string>& devices) {
    const DeviceMap encoder =
        folder.encoder == nullptr ? DeviceMap{} : get_device_map(n_encoder_layers(), devices);
    place(encoder, get_device_map(folder.decoder->n_layers(), devices));
  }

  // What a call gave for sequence `i`, named in what it throws.
  Sequence sequence(const Ids& ids, const Mask& mask, size_t i) const {
    try {
      if (!mask.empty() && mask.size() != ids.size()) {
        fail(ErrorKind::kRecord, "{} attention masks for {} sequences", mask.size(), ids.size());
      }
      Sequence sequence = sequence_from_ids(
          ids[i], mask.empty() ? std::span<const uint8_t>() : std::span<const uint8_t>(mask[i]),
          folder.decoder->vocab_size());
      if (sequence.tokens.empty()) fail(ErrorKind::kRecord, "no tokens");
      sequence.ordinal = i;
      return sequence;
    } catch (const Error& error) {
      fail(ErrorKind::kRecord, "sequence {}: {}", i, error.what());
    }
  }

  ForwardItem forward_item(const Ids& input_ids, const Mask& mask, const Ids& decoder_ids,
                           size_t i) const;
  std::vector<OutputRows> run(std::vector<ForwardBatch> batches, const std::vector<size_t>& n_rows);
};

// A decoder alone counts positions over the whole row, masked ids too.
ForwardItem PretrainedLanguageModel::Impl::forward_item(const Ids& input_ids, const Mask& mask,
                                                        const Ids& decoder_ids, size_t i) const {
  ForwardItem item;
  if (folder.encoder != nullptr) {
    item.source = sequence(input_ids, mask, i);
    item.decoder = sequence(decoder_ids, {}, i);
    return item;
  }
  item.decoder = sequence(input_ids, mask, i);
  if (mask.empty()) return item;
  item.decoder.positions.clear();
  for (size_t place = 0; place < mask[i].size(); ++place) {
    if (mask[i][place] != 0) item.decoder.positions.push_back(static_cast<int32_t>(place));
  }
  return item;
}

// Batches one after the other into the ring, as many as there are stages; rows of all sequences in
// order.
std::vector<OutputRows> PretrainedLanguageModel::Impl::run(std::vector<ForwardBatch> batches,
                                                           const std::vector<size_t>& n_rows) {
  int64_t most_pages = 0;
  for (const auto& batch : batches) most_pages = std::max(most_pages, batch.cross_pages());
  const size_t n_slots =
      std::min(batches.size(), ring->n_encoder_stages() + ring->n_decoder_stages() + 1);
  loaded->reserve({.cross = most_pages * static_cast<int64_t>(n_slots)});
  const auto width = folder.with_head ? folder.decoder->vocab_size() : folder.decoder->d_model();
  const auto submit_step = [&](uint64_t tag, std::vector<Tensor> sources) {
    const auto slot = static_cast<int32_t>(tag % n_slots);
    StepJob job =
        batches[tag].step_job(tag, std::move(sources), slot * static_cast<int32_t>(most_pages));
    job.request.rows = folder.with_head;
    job.request.hidden = !folder.with_head;
    ring->submit(std::move(job));
  };
  const auto submit = [&](uint64_t tag) {
    if (folder.encoder == nullptr) return submit_step(tag, {});
    ring->submit(batches[tag].encode_job(tag));
  };
  uint64_t next = 0;
  while (next < n_slots) submit(next++);
  std::vector<OutputRows> outputs;
  while (auto done = ring->wait()) {  // steps finish in the order in which they were submitted
    if (done.encode != nullptr) {
      submit_step(done.encode->tag, {std::move(done.encode->rows)});
      continue;
    }
    const std::vector<float>& rows = done.step->rows;
    for (size_t at = 0; at < rows.size();) {
      const size_t size = n_rows[outputs.size()] * static_cast<size_t>(width);
      const auto begin = rows.begin() + static_cast<int64_t>(at);
      outputs.push_back({.n_rows = static_cast<int64_t>(n_rows[outputs.size()]),
                         .width = width,
                         .values = {begin, begin + static_cast<int64_t>(size)}});
      at += size;
    }
    if (next < batches.size()) submit(next++);
  }
  loaded->reserve({});
  return outputs;
}

PretrainedLanguageModel::PretrainedLanguageModel(const std::string& folder,
                                                 const LoadOptions& options,
                                                 const std::string& model_type, bool with_head)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = folder;
  impl_->folder = GenerationFolder::open(folder, with_head);
  impl_->options = options;
  if (impl_->folder.decoder->model_type() != model_type) {
    fail(ErrorKind::kUsage, "{}: model_type is '{}', this class loads '{}'", folder,
         impl_->folder.decoder->model_type(), model_type);
  }
  impl_->dtype = impl_->folder.stored_dtype();
  if (!options.dtype.empty()) {
    const auto dtype = dtype_from_name(options.dtype);
    if (!dtype) {
      fail(ErrorKind::kUsage, "dtype '{}': expected float32, bfloat16 or float16", options.dtype);
    }
    impl_->dtype = *dtype;
  }
  if (options.device_map) {
    parallelize(*options.device_map);
  } else {
    impl_->place_evenly({options.device});
  }
}

PretrainedLanguageModel::PretrainedLanguageModel(PretrainedLanguageModel&&) noexcept = default;
PretrainedLanguageModel& PretrainedLanguageModel::operator=(PretrainedLanguageModel&&) noexcept =
    default;
PretrainedLanguageModel::~PretrainedLanguageModel() = default;

int64_t PretrainedLanguageModel::n_encoder_layers() const { return impl_->n_encoder_layers(); }
int64_t PretrainedLanguageModel::n_layers() const { return impl_->folder.decoder->n_layers(); }
int64_t PretrainedLanguageModel::d_model() const { return impl_->folder.decoder->d_model(); }
int64_t PretrainedLanguageModel::vocab_size() const { return impl_->folder.decoder->vocab_size(); }

void PretrainedLanguageModel::parallelize() {
  impl_->place_evenly(devices_like(impl_->first_device()));
}

void PretrainedLanguageModel::parallelize(const DeviceMap& device_map) {
  impl_->place(impl_->folder.encoder == nullptr ? DeviceMap{} : device_map, device_map);
}

void PretrainedLanguageModel::parallelize(const DeviceMap& encoder_map,
                                          const DeviceMap& decoder_map) {
  impl_->place(encoder_map, decoder_map);
}

void PretrainedLanguageModel::deparallelize() { impl_->place_evenly({impl_->first_device()}); }

bool PretrainedLanguageModel::is_parallel() const { return impl_->loaded->devices().size() > 1; }
const DeviceMap& PretrainedLanguageModel::encoder_device_map() const { return impl_->maps.encoder; }
const DeviceMap& PretrainedLanguageModel::device_map() const { return impl_->maps.decoder; }

std::vector<DeviceMemory> PretrainedLanguageModel::memory() const {
  std::vector<DeviceMemory> memory;
  for (const auto& device : impl_->loaded->devices()) {
    memory.push_back({.device = device->name(), .used = device->memory().used});
  }
  return memory;
}

std::vector<OutputRows> PretrainedLanguageModel::run_forward(const Ids& input_ids,
                                                             const Mask& attention_mask,
                                                             const Ids& decoder_input_ids) {
  const bool reads_encoder = impl_->folder.encoder != nullptr;
  if (reads_encoder && decoder_input_ids.size() != input_ids.size()) {
    fail(ErrorKind::kRecord, "{} decoder_input_ids for {} sequences", decoder_input_ids.size(),
         input_ids.size());
  }
  std::vector<ForwardBatch> batches;
  std::vector<size_t> n_rows;
  const int64_t bound = impl_->folder.decoder->max_positions();
  for (size_t i = 0; i < input_ids.size(); ++i) {
    ForwardItem item = impl_->forward_item(input_ids, attention_mask, decoder_input_ids, i);
    const Sequence& decoder = item.decoder;
    const int64_t last = decoder.positions.empty() ? static_cast<int64_t>(decoder.tokens.size()) - 1
                                                   : decoder.positions.back();
    if (bound > 0 && last >= bound) {
      fail(ErrorKind::kRecord, "sequence {}: position {}, the model has 0 to {}", i, last,
           bound - 1);
    }
    const auto n = static_cast<int64_t>(item.source.tokens.size() + decoder.tokens.size());
    n_rows.push_back(decoder.tokens.size());
    if (batches.empty() || batches.back().n_source_tokens() + batches.back().n_tokens() + n >
                               impl_->options.tokens_per_batch) {
      batches.emplace_back();
    }
    batches.back().add(std::move(item));
  }
  if (batches.empty()) return {};
  std::vector<OutputRows> outputs = impl_->run(std::move(batches), n_rows);
  for (size_t i = 0; i < outputs.size() && !reads_encoder && !attention_mask.empty(); ++i) {
    OutputRows& rows = outputs[i];
    rows.values = unmask_rows(rows.values, attention_mask[i], static_cast<size_t>(rows.width));
    rows.n_rows = static_cast<int64_t>(attention_mask[i].size());
  }
  return outputs;
}

std::vector<std::vector<GeneratedSequence>> PretrainedLanguageModel::run_generate(
    const Ids& input_ids, const Mask& attention_mask, const Ids& decoder_input_ids,
    const GenerationOptions& options) {
  const DecoderModel& decoder = *impl_->folder.decoder;
  GenerationConfig config = load_generation_config(impl_->path);
  apply_generation_options(config, values_of(options), "options");
  check_generation_config(config, decoder.vocab_size());
  const bool reads_encoder = impl_->folder.encoder != nullptr;
  const int32_t start = reads_encoder ? decoder_start_token(config) : 0;
  if (!decoder_input_ids.empty() && decoder_input_ids.size() != input_ids.size()) {
    fail(ErrorKind::kRecord, "{} decoder_input_ids for {} sequences", decoder_input_ids.size(),
         input_ids.size());
  }

  std::vector<GenerationTask> tasks;
  CachePages most;  // of one record
  int64_t most_rows = 1;
  for (size_t i = 0; i < input_ids.size(); ++i) {
    GenerationTask task;
    task.ordinal = i;
    Sequence ids = impl_->sequence(input_ids, attention_mask, i);
    SearchInput input;
    input.ordinal = i;
    input.vocab_size = decoder.vocab_size();
    input.max_positions = decoder.max_positions();
    input.padded_prompt_length = static_cast<int64_t>(input_ids[i].size());
    if (reads_encoder) {
      if (!decoder_input_ids.empty())
        task.prompt = impl_->sequence(decoder_input_ids, {}, i).tokens;
      if (task.prompt.empty() || task.prompt.front() != start) {
        task.prompt.insert(task.prompt.begin(), start);
      }
      input.encoder_input = ids.tokens;
      input.padded_prompt_length = static_cast<int64_t>(task.prompt.size());
      task.source = std::move(ids);
    } else {
      task.prompt = std::move(ids.tokens);
      input.encoder_input = task.prompt;
    }
    input.prompt = task.prompt;
    try {
      task.search = make_search(config, std::move(input));
    } catch (const Error& error) {
      fail(error.kind(), "sequence {}: {}", i, error.what());
    }
    most_rows = std::max(most_rows, task.search->max_rows());
    const CachePages pages = pages_of_record(
        static_cast<int64_t>(task.prompt.size()), static_cast<int64_t>(task.source.tokens.size()),
        task.search->max_rows(), task.search->max_new_tokens());
    most = {.self = std::max(most.self, pages.self), .cross = std::max(most.cross, pages.cross)};
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) return {};

  GeneratorOptions generator_options;
  generator_options.n_groups = static_cast<int64_t>(impl_->ring->n_decoder_stages());
  generator_options.rows_per_group = std::max(most_rows, options.batch_size);
  generator_options.max_positions = decoder.max_positions();
  const int64_t n_records =
      generator_options.n_groups * (generator_options.rows_per_group / most_rows);
  generator_options.pages = {.self = most.self * n_records, .cross = most.cross * n_records};
  impl_->loaded->reserve(generator_options.pages);

  std::vector<std::vector<GeneratedSequence>> results(tasks.size());
  size_t next = 0;
  Generator::Events events;
  events.next = [&]() -> std::optional<GenerationTask> {
    if (next == tasks.size()) return std::nullopt;
    return std::move(tasks[next++]);
  };
  events.done = [&](GenerationResult result) {
    if (!result.rejected.empty()) {
      fail(ErrorKind::kRecord, "sequence {}: {}", result.ordinal, result.rejected);
    }
    for (Generated& sequence : result.sequences) {
      results[result.ordinal].push_back(
          {.ids = std::move(sequence.ids),
           .score = sequence.has_score ? std::optional(sequence.score) : std::nullopt});
    }
  };
  const std::atomic<bool> stop = false;
  Generator(*impl_->ring, generator_options).run(events, stop);
  impl_->loaded->reserve({});
  return results;
}

T5Model T5Model::from_pretrained(const std::string& folder, const LoadOptions& options) {
  return {folder, options, "t5", false};
}

T5ForConditionalGeneration T5ForConditionalGeneration::from_pretrained(const std::string& folder,
                                                                       const LoadOptions& options) {
  return {folder, options, "t5", true};
}

MT5Model MT5Model::from_pretrained(const std::string& folder, const LoadOptions& options) {
  return {folder, options, "mt5", false};
}

MT5ForConditionalGeneration MT5ForConditionalGeneration::from_pretrained(
    const std::string& folder, const LoadOptions& options) {
  return {folder, options, "mt5", true};
}

UMT5Model UMT5Model::from_pretrained(const std::string& folder, const LoadOptions& options) {
  return {folder, options, "umt5", false};
}

UMT5ForConditionalGeneration UMT5ForConditionalGeneration::from_pretrained(
    const std::string& folder, const LoadOptions& options) {
  return {folder, options, "umt5", true};
}

GPT2Model GPT2Model::from_pretrained(const std::string& folder, const LoadOptions& options) {
  return {folder, options, "gpt2", false};
}

GPT2LMHeadModel GPT2LMHeadModel::from_pretrained(const std::string& folder,
                                                 const LoadOptions& options) {
  return {folder, options, "gpt2", true};
}

}  // namespace quintet
