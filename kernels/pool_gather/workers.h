// Threads that do one piece of work together, each on a CPU of its own.
#pragma once

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// How long a thread that has no work keeps its CPU before it sleeps. To wake all of them takes
// longer than a small gather.
constexpr std::chrono::milliseconds kSpin{20};

// The CPUs of the workers: the last seven of eight, `most` at most. The others are for the caller,
// the driver and whatever else runs. A worker that has to give way is late by a tick of the
// scheduler, which takes as long as the launch.
inline std::vector<int> worker_cpus(const std::vector<int>& cpus, size_t most) {
  if (cpus.size() < 2) {
    throw std::invalid_argument("cpus: expected at least 2, got " + std::to_string(cpus.size()));
  }
  const size_t others = (cpus.size() + 7) / 8;
  const size_t count = std::min(cpus.size() - others, most);
  return {cpus.end() - static_cast<std::ptrdiff_t>(count), cpus.end()};
}

// Keeps the calling thread off these CPUs while it lives. A caller that waits on the CPU of a
// worker would keep it from working until the scheduler moves one of them.
class OffCpus {
 public:
  explicit OffCpus(const std::vector<int>& cpus) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t others = before_;
    for (const int cpu : cpus) {
      CPU_CLR(cpu, &others);
    }
    if (CPU_COUNT(&others) > 0) {
      pthread_setaffinity_np(pthread_self(), sizeof others, &others);
    }
  }
  OffCpus(const OffCpus&) = delete;
  OffCpus& operator=(const OffCpus&) = delete;
  ~OffCpus() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

// Used by one thread at a time, which takes no part in the work.
class Workers {
 public:
  // A thread for each of these CPUs.
  explicit Workers(const std::vector<int>& cpus) {
    try {
      for (const int cpu : cpus) {
        threads_.emplace_back([this, cpu] { run(cpu); });
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  // Has every thread call `work` once, when they are done with what came before. Returns at once.
  void start(std::function<void()> work) {
    finish();
    work_ = std::move(work);
    working_.store(threads_.size(), std::memory_order_relaxed);
    announce();
  }

  // Waits until every thread is done.
  void finish() const {
    while (working_.load(std::memory_order_acquire) != 0) {
      _mm_pause();
    }
  }

 private:
  void run(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    // Where it is not allowed any more, the thread is only slower.
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    for (uint64_t turn = 0;; ++turn) {
      await(turn);
      if (is_over_) {
        return;
      }
      work_();
      working_.fetch_sub(1, std::memory_order_release);
    }
  }

  // Waits until more than `turn` pieces of work have been announced.
  void await(uint64_t turn) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (announced_.load(std::memory_order_acquire) == turn) {
      if (std::chrono::steady_clock::now() < until) {
        _mm_pause();
        continue;
      }
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return announced_.load(std::memory_order_acquire) != turn; });
    }
  }

  void announce() {
    {
      const std::lock_guard lock(mutex_);
      announced_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
  }

  void stop() {
    finish();
    is_over_ = true;
    announce();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  std::function<void()> work_;  // this and the next change only before an announcement
  bool is_over_ = false;
  std::atomic<uint64_t> announced_{0};
  std::atomic<size_t> working_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};
