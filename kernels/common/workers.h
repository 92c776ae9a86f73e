// Threads that share one piece of work, each pinned to another CPU.
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

// Time that an idle thread spins before it sleeps. To wake all threads takes longer than a small
// gather.
constexpr std::chrono::milliseconds kSpin{20};

// The CPUs of at most `max_workers` workers: the last seven of eight. The others are left to the
// caller, the driver and other processes. A worker that is preempted is late by a tick of the
// scheduler, which is as long as a launch.
inline std::vector<int> worker_cpus(const std::vector<int>& cpus, size_t max_workers) {
  if (cpus.size() < 2) {
    throw std::invalid_argument("cpus: expected at least 2, got " + std::to_string(cpus.size()));
  }
  const size_t others = (cpus.size() + 7) / 8;
  const size_t count = std::min(cpus.size() - others, max_workers);
  return {cpus.end() - static_cast<std::ptrdiff_t>(count), cpus.end()};
}

// Keeps the calling thread off the workers' CPUs during its lifetime. A caller that spins on a
// worker's CPU would block it until the scheduler moves one of them.
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

// Used by one thread at a time, which does not share the work.
class Workers {
 public:
  // Starts a thread for each of these CPUs.
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

  // Lets every thread call `work` once, after all have done the previous work. Returns at once.
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
    // If the CPU is no longer allowed, the thread is only slower.
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    for (uint64_t turn = 0;; ++turn) {
      await(turn);
      if (is_stopping_) {
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
    is_stopping_ = true;
    announce();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  std::function<void()> work_;  // this and is_stopping_ change only before an announcement
  bool is_stopping_ = false;
  std::atomic<uint64_t> announced_{0};
  std::atomic<size_t> working_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};
