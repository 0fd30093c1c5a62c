// How far a job is.
#ifndef QUINTET_ENGINE_JOB_PROGRESS_H_
#define QUINTET_ENGINE_JOB_PROGRESS_H_

#include <cstdint>

namespace quintet {

struct JobProgress {
  uint64_t records = 0;     // written or rejected in this run
  uint64_t tokens = 0;      // computed in this run
  double share = 0;         // of the input that is finished; 0: unknown
  double share_before = 0;  //   by earlier runs
  double seconds = 0;       // since the first record was read
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_JOB_PROGRESS_H_
