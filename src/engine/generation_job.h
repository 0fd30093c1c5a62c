// The way of a job over a model that generates: what can be refused is refused before a weight is
// read, then the model is laid out and loaded, the job's own part computes, and the output is
// built.
#ifndef QUINTET_ENGINE_GENERATION_JOB_H_
#define QUINTET_ENGINE_GENERATION_JOB_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "engine/generate.h"
#include "engine/generation_layout.h"
#include "engine/generation_model.h"
#include "engine/line_job.h"
#include "engine/options.h"
#include "engine/prompt_reader.h"
#include "generation/generation_config.h"
#include "pipeline/ring.h"
#include "pipeline/trace.h"

namespace quintet {

// The model's config, with the options of the caller on top; checked.
GenerationConfig generation_config_of(const Options& options, const GenerationFolder& folder);

// Whether `quintet plan` is asked about generating: of a decoder alone, or where an option of
// generating is given; else about embedding.
bool plans_generation(const Options& options);

// The first records of --input, tokenised; else --lengths; else some usual ones. scored: with the
// ids that are scored.
ExpectedPrompts expected_prompts(const Options& options, const GenerationFolder& folder,
                                 const GenerationConfig& config, bool scored);

class GenerationJob {
 public:
  GenerationJob(const Options& options, const GenerateEvents& events, const std::atomic<bool>& stop)
      : options_(options), events_(events), stop_(stop) {}
  virtual ~GenerationJob() = default;

  LineJobResult run(std::chrono::steady_clock::time_point started);

 protected:
  virtual std::string kind() const = 0;  // the command's name
  virtual bool scores() const = 0;       // no token is generated
  // Refuses what cannot be; nothing has been written or loaded yet.
  virtual void check() = 0;
  // Whether a record would be rejected for what stands in it.
  virtual bool is_impossible(const Record& record) = 0;
  // Takes records from job() until there are none or stop(), and completes each of them.
  virtual void compute(LineJobResult& result) = 0;

  const Options& options() const { return options_; }
  const std::atomic<bool>& stop() const { return stop_; }
  const GenerationFolder& folder() const { return folder_; }
  const GenerationConfig& config() const { return config_; }
  const GenerationLayout& layout() const { return layout_; }
  PromptReader& prompts() const { return *prompts_; }
  LineJob& job() { return *job_; }
  Ring& ring() { return *ring_; }

 private:
  bool prepare(LineJobResult& result);
  void load();

  const Options& options_;
  const GenerateEvents& events_;
  const std::atomic<bool>& stop_;

  GenerationFolder folder_;
  GenerationConfig config_;
  std::unique_ptr<LineJob> job_;
  std::unique_ptr<PromptReader> prompts_;
  GenerationLayout layout_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<LoadedGenerationModel> loaded_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_GENERATION_JOB_H_
