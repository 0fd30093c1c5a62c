// The threads of a CPU device, pinned to its cores, and the lending of idle threads between the
// devices of one process. Work is cut into items whose results do not depend on who computes them,
// so a guest thread may join a running loop at any time and leave between any two items. Threads of
// one pool may also work side by side, each with loops of its own: see ThreadPool::run_parts.
#ifndef QUINTET_BACKENDS_CPU_THREAD_POOL_H_
#define QUINTET_BACKENDS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace quintet {

// Runs the calling thread on these OS cores only; cores this process may not use are ignored.
void pin_this_thread(const std::vector<int>& cores);

// Memory of the calling thread for the length of one item: aligned to a cache line, contents
// undefined, the same memory again at the next call.
std::byte* thread_scratch(size_t bytes);

// Work on item i.
class ItemFn {
 public:
  ItemFn() = default;
  template <typename F>
  requires(!std::is_same_v<F, ItemFn>) explicit ItemFn(const F& f)
      : object_(&f),
        call_([](const void* object, int64_t i) { (*static_cast<const F*>(object))(i); }) {}
  void operator()(int64_t item) const { call_(object_, item); }

 private:
  const void* object_ = nullptr;
  void (*call_)(const void*, int64_t) = nullptr;
};

// A loop under way: whoever joins takes items until none is left.
class Loop {
 public:
  void start(int64_t n, ItemFn fn);  // while it is closed
  bool join();                       // false: it is closed
  void leave();                      // after join()
  bool work_one();  // by the starter, or between join() and leave(): false: no item is left
  bool work();      // joins, takes items, leaves: false: there was none to take
  // By the starter, when no item is left. The items that others have still go on: idle() tells when
  // the last is done, raise() then throws the first thing an item threw.
  void close() { open_.store(false); }
  bool idle() const { return inside_.load() == 0; }
  void wait_until_idle();
  void raise();

 private:
  // Written by start() while `open_` is false and nobody is inside; whoever has joined and then
  // seen `open_` may read it until leave().
  ItemFn fn_;
  int64_t n_items_ = 0;
  std::exception_ptr error_;
  std::mutex error_mutex_;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<bool> open_{false};
  std::atomic<int> inside_{0};  // workers and guests that have joined
};

class ThreadPool;

// Where idle threads find the busy pools of the process.
class CoreLending {
 public:
  static const std::shared_ptr<CoreLending>& of_process();

  // See Device::lend_until. False at once while `own` is the only pool there is.
  bool help_until(const ThreadPool& own, const std::function<bool()>& stop);
  void wake();  // every helper asks its stop() again

 private:
  friend class ThreadPool;
  void add(ThreadPool& pool);
  void remove(ThreadPool& pool);
  bool help_once(const ThreadPool& own);  // one item of any busy pool
  void announce();                        // a pool has opened a loop

  mutable std::mutex mutex_;
  std::vector<ThreadPool*> pools_;
  std::atomic<int> n_pools_{0};
  std::atomic<int> open_loops_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<uint32_t> epoch_{0};
};

// The driving thread calls parallel_for and takes part: a pool of n threads has n - 1 workers.
class ThreadPool {
 public:
  ThreadPool(std::vector<int> cores, int threads, std::shared_ptr<CoreLending> lending);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // How many threads may come to work on a loop, guests included: what items should balance over.
  int width() const;
  void pin_calling_thread() const;  // to the first core, or to all where there are more threads

  // fn(i) for i in [0, n), in any order and on any thread; throws the first thing an item threw.
  template <typename F>
  void parallel_for(int64_t n, const F& fn) {
    if (n <= 1 || width() == 1) {
      for (int64_t i = 0; i < n; ++i) fn(i);
      return;
    }
    run(n, ItemFn(fn));
  }

  // part(i) for i in [0, n), side by side on the pool's own threads: parts are larger than items
  // and may themselves call parallel_for. Whoever has none left helps with the loops of the others.
  template <typename F>
  void run_parts(int64_t n, const F& part) {
    if (n <= 1 || threads_ == 1) {
      for (int64_t i = 0; i < n; ++i) part(i);
      return;
    }
    run_parts_together(n, ItemFn(part));
  }

 private:
  friend class CoreLending;
  void run(int64_t n, ItemFn fn);
  void run_parts_together(int64_t n, ItemFn part);
  void announce();  // something has been opened
  bool help();      // takes items of an open loop; false: there was none
  Loop* join();     // an open loop, or null
  void worker(size_t index);
  std::vector<int> cores_of(size_t thread) const;

  const std::vector<int> cores_;
  const int threads_;
  const std::shared_ptr<CoreLending> lending_;
  std::vector<Loop> loops_;  // one per thread: of the part it runs
  Loop parts_;

  alignas(64) std::atomic<uint32_t> epoch_{0};  // bumped at each start and at the end
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_THREAD_POOL_H_
