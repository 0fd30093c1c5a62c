// SIGINT and SIGTERM of a run that can be resumed: the first asks it to stop, the second ends the
// program. A micro-batch may take minutes; a run that has not stopped after a moment is ended as it
// is, for what is finished lies in the spool already.
#ifndef QUINTET_APPS_CLI_STOP_SIGNALS_H_
#define QUINTET_APPS_CLI_STOP_SIGNALS_H_

#include <atomic>
#include <thread>

namespace quintet {

// One at a time.
class StopSignals {
 public:
  // can_resume: else the signals do what they always do, and asked() stays false.
  explicit StopSignals(bool can_resume);

  const std::atomic<bool>& asked() const;

 private:
  std::jthread watcher_;
};

}  // namespace quintet

#endif  // QUINTET_APPS_CLI_STOP_SIGNALS_H_
