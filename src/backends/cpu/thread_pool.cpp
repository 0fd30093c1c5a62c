#include "backends/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace quintet {

namespace {

// How long a thread looks for work before it sleeps: longer than the gap between two ops, shorter
// than anyone would notice as load.
constexpr auto kSpin = std::chrono::microseconds(300);

// Waits for done() to hold, at most kSpin; says whether it does.
template <typename F>
bool spin_until(const F& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// Which of its pool's threads this one is; who is in no pool drives one and is the first.
thread_local size_t thread_index = 0;

constexpr std::align_val_t kScratchAlignment{4096};

struct Scratch {
  std::byte* data = nullptr;
  size_t bytes = 0;
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { ::operator delete(data, kScratchAlignment); }
};

}  // namespace

void pin_this_thread(const std::vector<int>& cores) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  int n = 0;
  for (const int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE) continue;
    CPU_SET(core, &wanted);
    ++n;
  }
  if (n > 0) ::pthread_setaffinity_np(::pthread_self(), sizeof wanted, &wanted);
}

std::byte* thread_scratch(size_t bytes) {
  thread_local Scratch scratch;
  if (scratch.bytes < bytes) {
    ::operator delete(std::exchange(scratch.data, nullptr), kScratchAlignment);
    scratch.bytes = 0;
    scratch.data = static_cast<std::byte*>(::operator new(bytes, kScratchAlignment));
    scratch.bytes = bytes;
  }
  return scratch.data;
}

// ---- Lending

const std::shared_ptr<CoreLending>& CoreLending::of_process() {
  static const auto lending = std::make_shared<CoreLending>();
  return lending;
}

void CoreLending::add(ThreadPool& pool) {
  const std::scoped_lock lock(mutex_);
  pools_.push_back(&pool);
  n_pools_ = static_cast<int>(pools_.size());
}

void CoreLending::remove(ThreadPool& pool) {
  const std::scoped_lock lock(mutex_);
  std::erase(pools_, &pool);
  n_pools_ = static_cast<int>(pools_.size());
}

void CoreLending::wake() {
  epoch_.fetch_add(1);
  epoch_.notify_all();
}

void CoreLending::announce() {
  if (sleepers_.load() > 0) wake();
}

bool CoreLending::help_once(const ThreadPool& own) {
  Loop* busy = nullptr;
  {
    // Guests come and go under this lock: a pool that has been removed and is empty has seen the
    // last of them.
    const std::scoped_lock lock(mutex_);
    for (ThreadPool* pool : pools_) {
      if (pool != &own) busy = pool->join();
      if (busy != nullptr) break;
    }
  }
  if (busy == nullptr) return false;
  const bool worked = busy->work_one();
  const std::scoped_lock lock(mutex_);
  busy->leave();
  return worked;
}

bool CoreLending::help_until(const ThreadPool& own, const std::function<bool()>& stop) {
  if (n_pools_ < 2) return false;
  while (true) {
    const uint32_t seen = epoch_.load();
    if (stop()) return true;
    if (open_loops_.load() > 0) {
      if (!help_once(own)) __builtin_ia32_pause();
      continue;
    }
    if (spin_until([&] { return epoch_.load() != seen || open_loops_.load() > 0; })) continue;
    sleepers_.fetch_add(1);
    if (open_loops_.load() == 0) epoch_.wait(seen);
    sleepers_.fetch_sub(1);
  }
}

// ---- Loop

void Loop::start(int64_t n, ItemFn fn) {
  fn_ = fn;
  n_items_ = n;
  error_ = nullptr;
  next_.store(0);
  open_.store(true);
}

bool Loop::join() {
  if (!open_.load()) return false;
  inside_.fetch_add(1);
  if (open_.load()) return true;
  leave();
  return false;
}

void Loop::leave() {
  if (inside_.fetch_sub(1) == 1) inside_.notify_all();
}

bool Loop::work_one() {
  const int64_t item = next_.fetch_add(1);
  if (item >= n_items_) return false;
  try {
    fn_(item);
  } catch (...) {
    const std::scoped_lock lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
    next_.store(n_items_);
  }
  return true;
}

bool Loop::work() {
  if (!join()) return false;
  bool worked = false;
  while (work_one()) worked = true;
  leave();
  return worked;
}

void Loop::wait_until_idle() {
  if (spin_until([&] { return idle(); })) return;
  for (int inside = inside_.load(); inside != 0; inside = inside_.load()) inside_.wait(inside);
}

void Loop::raise() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// ---- ThreadPool

ThreadPool::ThreadPool(std::vector<int> cores, int threads, std::shared_ptr<CoreLending> lending)
    : cores_(std::move(cores)),
      threads_(std::max(1, threads)),
      lending_(std::move(lending)),
      loops_(static_cast<size_t>(threads_)) {
  for (int i = 1; i < threads_; ++i) {
    workers_.emplace_back([this, i] { worker(static_cast<size_t>(i)); });
  }
  lending_->add(*this);
}

ThreadPool::~ThreadPool() {
  lending_->remove(*this);
  stopping_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& thread : workers_) thread.join();
  for (const Loop& loop : loops_) {
    while (!loop.idle()) std::this_thread::yield();  // a guest that found nothing to do
  }
  lending_->remove(*this);  // and it is past its leave()
}

int ThreadPool::width() const { return threads_ + (lending_->n_pools_ > 1 ? 1 : 0); }

std::vector<int> ThreadPool::cores_of(size_t thread) const {
  if (cores_.size() < static_cast<size_t>(threads_)) return cores_;  // left to the system
  return {cores_[thread]};
}

void ThreadPool::pin_calling_thread() const { pin_this_thread(cores_of(0)); }

Loop* ThreadPool::join() {
  const auto open =
      std::find_if(loops_.begin(), loops_.end(), [](Loop& loop) { return loop.join(); });
  return open == loops_.end() ? nullptr : &*open;
}

bool ThreadPool::help() {
  return std::any_of(loops_.begin(), loops_.end(), [](Loop& loop) { return loop.work(); });
}

void ThreadPool::announce() {
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) epoch_.notify_all();
}

void ThreadPool::run(int64_t n, ItemFn fn) {
  Loop& loop = loops_[thread_index];
  loop.start(n, fn);
  lending_->open_loops_.fetch_add(1);
  announce();
  lending_->announce();
  while (loop.work_one()) {
  }
  lending_->open_loops_.fetch_sub(1);
  loop.close();
  loop.wait_until_idle();
  loop.raise();
}

void ThreadPool::run_parts_together(int64_t n, ItemFn part) {
  parts_.start(n, part);
  announce();
  while (parts_.work_one()) {
  }
  parts_.close();
  while (!parts_.idle()) {
    if (!help()) std::this_thread::yield();
  }
  parts_.raise();
}

void ThreadPool::worker(size_t index) {
  thread_index = index;
  pin_this_thread(cores_of(index));
  uint32_t seen = 0;
  while (true) {
    const auto woken = [&] { return epoch_.load() != seen; };
    if (!spin_until(woken)) {
      sleepers_.fetch_add(1);
      epoch_.wait(seen);
      sleepers_.fetch_sub(1);
    }
    seen = epoch_.load();
    if (stopping_) return;
    while (parts_.work() || help()) {
    }
  }
}

}  // namespace quintet
