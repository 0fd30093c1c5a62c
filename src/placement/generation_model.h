// What a device's part of both stacks costs while a ring generates: seconds per record and bytes,
// from exact counts, measured speeds and the records to come.
#ifndef QUINTET_PLACEMENT_GENERATION_MODEL_H_
#define QUINTET_PLACEMENT_GENERATION_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "placement/generation_plan.h"
#include "placement/joint_split.h"
#include "placement/stack_bytes.h"
#include "placement/stage_model.h"

namespace quintet {

struct GroupSetting {
  int64_t n_groups = 1;
  int64_t records_per_group = 1;
};

struct DeviceBytes {
  int64_t weights = 0;
  int64_t caches = 0;
  int64_t activations = 0;

  int64_t all() const { return weights + caches + activations; }
};

// Its arguments outlive it.
class GenerationModel {
 public:
  GenerationModel(const GenerationStacks& stacks, const std::vector<DeviceSpec>& devices,
                  const GenerationProfile& profile, const GroupSetting& setting);
  GenerationModel(const GenerationModel&) = delete;  // the encoder's model refers to a member
  GenerationModel& operator=(const GenerationModel&) = delete;

  const GroupSetting& setting() const { return setting_; }
  int64_t n_encoder() const { return encoder_ ? encoder_->n_layers() : 0; }
  int64_t n_decoder() const { return decoder_bytes_.n_layers(); }
  int64_t self_pages() const { return self_pages_; }
  int64_t cross_pages() const { return cross_pages_; }

  double encoder_seconds(size_t device, const BlockSpan& blocks) const;
  double decoder_seconds(size_t device, const BlockSpan& blocks) const;
  double seconds(size_t device, const JointRun& run) const {
    return encoder_seconds(device, run.encoder) + decoder_seconds(device, run.decoder);
  }
  int64_t encoder_weights(const BlockSpan& blocks) const;
  int64_t decoder_weights(const BlockSpan& blocks) const;
  DeviceBytes bytes(size_t device, const JointRun& run) const;
  int64_t needed_bytes(size_t device, const JointRun& run) const {
    return bytes(device, run).all() + devices_[device].fixed_bytes;
  }
  // Records that the ring finishes, the slowest device and all decoder stages together taking so
  // long for one: with few records some groups are empty, and a group is on one device at a time.
  double records_per_second(double slowest, double all_decoder_stages) const;

 private:
  int64_t records_at_once() const;
  // Averages over the records.
  struct Mean {
    double source = 0;
    double prompt = 0;
    double steps = 0;        // from the prompt's to the last token's
    double step_keys = 0;    // of the self cache that the rows of all steps attend to
    double prompt_keys = 0;  // that the prompt's tokens attend to
    double cross_keys = 0;
  };
  // How a device's passes over its weights share out over records.
  struct Passes {
    double with_prompts = 0;  // per record
    double without = 0;
    double prompts = 0;  // that come together in one pass
    double rows = 0;     // of sequences under way, in every pass
  };

  LengthProfile encoder_profile() const;
  void read_records();
  void share_passes();
  void count_pages();
  void set_peak();
  void count_sources();
  double passes_seconds(const DeviceSpec& device, double flops_per_row, double weight_bytes,
                        double prompt_rows) const;
  double block_seconds(const DeviceSpec& device, const BlockCost& block) const;

  const GenerationStacks& stacks_;
  const std::vector<DeviceSpec>& devices_;
  const GenerationProfile& profile_;
  GroupSetting setting_;
  LengthProfile encoder_profile_;
  std::optional<StageModel> encoder_;
  StackBytes decoder_bytes_;
  Mean mean_;
  Passes passes_;
  int64_t self_pages_ = 0;
  int64_t cross_pages_ = 0;
  PeakLoad peak_;              // of the decoder
  int64_t logits_bytes_ = 0;   // beside the last block
  int64_t encoded_bytes_ = 0;  // encoder's output that waits where it was made
  int64_t source_bytes_ = 0;   //   and that lies with steps before a decoder stage
  std::vector<std::vector<double>> decoder_seconds_;  // [device][n_decoder + 1], of blocks before;
                                                      //   the last with the head
};

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_GENERATION_MODEL_H_
