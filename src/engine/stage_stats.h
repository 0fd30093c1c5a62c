// What the stages did, for --stats.
#ifndef QUINTET_ENGINE_STAGE_STATS_H_
#define QUINTET_ENGINE_STAGE_STATS_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "pipeline/stage_meter.h"

namespace quintet {

// An array with an object per stage; `seconds`: of the run, for the busy share.
nlohmann::ordered_json stages_json(const std::vector<StageStats>& stages, double seconds);

}  // namespace quintet

#endif  // QUINTET_ENGINE_STAGE_STATS_H_
