// How far a run is: a bar on a terminal, a line every 30 s elsewhere; on standard error.
#ifndef QUINTET_APPS_CLI_PROGRESS_H_
#define QUINTET_APPS_CLI_PROGRESS_H_

#include <chrono>
#include <mutex>
#include <string>

#include "engine/job_progress.h"

namespace quintet {

class ProgressBar {
 public:
  // `unit`: what a token is called: "residues", "tokens".
  ProgressBar(bool quiet, std::string unit);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const JobProgress& progress);
  void print(const std::string& line);  // above the bar; on any thread
  void clear();                         // takes the bar off the terminal

 private:
  std::string unit_;
  bool quiet_;
  bool terminal_;
  std::mutex mutex_;  // of the terminal's last line
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

// "4.2 s", "3:07", "2:03:45".
std::string clock_time(double seconds);

}  // namespace quintet

#endif  // QUINTET_APPS_CLI_PROGRESS_H_
