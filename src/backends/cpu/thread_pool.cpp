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
  ThreadPool* busy = nullptr;
  {
    // Guests come and go under this lock: a pool that has been removed and is empty has seen the
    // last of them.
    const std::scoped_lock lock(mutex_);
    for (ThreadPool* pool : pools_) {
      if (pool != &own && pool->join()) {
        busy = pool;
        break;
      }
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

// ---- ThreadPool

ThreadPool::ThreadPool(std::vector<int> cores, int threads, std::shared_ptr<CoreLending> lending)
    : cores_(std::move(cores)), threads_(std::max(1, threads)), lending_(std::move(lending)) {
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
  while (inside_.load() != 0) std::this_thread::yield();  // a guest that found nothing to do
  lending_->remove(*this);                                // and it is past its leave()
}

int ThreadPool::width() const { return threads_ + (lending_->n_pools_ > 1 ? 1 : 0); }

std::vector<int> ThreadPool::cores_of(size_t thread) const {
  if (cores_.size() < static_cast<size_t>(threads_)) return cores_;  // left to the system
  return {cores_[thread]};
}

void ThreadPool::pin_calling_thread() const { pin_this_thread(cores_of(0)); }

bool ThreadPool::join() {
  if (!open_.load()) return false;
  inside_.fetch_add(1);
  if (open_.load()) return true;
  leave();
  return false;
}

void ThreadPool::leave() {
  if (inside_.fetch_sub(1) == 1) inside_.notify_all();
}

bool ThreadPool::work_one() {
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

void ThreadPool::run(int64_t n, ItemFn fn) {
  fn_ = fn;
  n_items_ = n;
  error_ = nullptr;
  next_.store(0);
  open_.store(true);
  lending_->open_loops_.fetch_add(1);
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) epoch_.notify_all();
  lending_->announce();

  while (work_one()) {
  }
  lending_->open_loops_.fetch_sub(1);
  open_.store(false);
  // Whoever is inside finishes the item it has.
  if (!spin_until([&] { return inside_.load() == 0; })) {
    for (int inside = inside_.load(); inside != 0; inside = inside_.load()) inside_.wait(inside);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::worker(size_t index) {
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
    if (!join()) continue;
    while (work_one()) {
    }
    leave();
  }
}

}  // namespace quintet
