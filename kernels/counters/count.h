// Counting threads: each alternates between work and an increment. workload.py calls them through
// bindings.cpp.
#pragma once

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../common/pin_to.h"

constexpr size_t kMaxThreads = 256;

// Increments between two looks at whether another thread has ended the run.
constexpr uint64_t kBatch = 256;

struct Run {
  std::vector<int> cores;  // one thread on each
  uint64_t batches;        // at least 1; the first thread to have counted them ends the run
  uint64_t work;           // dependent multiplications before each increment
};

struct Counted {
  double thread_seconds;  // sum over all threads, each from its start to its end
  uint64_t expected;      // increments that the threads have made
  uint64_t total;         // increments that the counters hold after the run
};

// Counts with 1 to kMaxThreads threads; each variant defines it. Throws std::runtime_error if a
// thread cannot be pinned.
Counted count(const Run& run);

// Dependent multiplications.
struct Work {
  uint64_t multiplications;

  void operator()() const {
    uint64_t value = 1;
    for (uint64_t i = 0; i < multiplications; ++i) {
      value *= 6364136223846793005U;
      asm volatile("" : "+r"(value));  // or the compiler would remove the loop
    }
  }
};

struct NoWork {
  void operator()() const {}
};

// Calls work() and then increment(), kBatch times. Unrolled, because an increment in a register
// takes less time than the loop around it.
template <typename Between, typename Increment>
inline void count_batch(const Between& work, const Increment& increment) {
#pragma GCC unroll 32
  for (uint64_t i = 0; i < kBatch; ++i) {
    work();
    increment();
  }
}

// Repeats batch(thread, work) in one thread per core. All start together, and the first thread with
// run.batches ends the run for all. So no thread counts alone at the end, and nobody waits for a
// thread that the system interrupts. `batch` must not throw. The result has no `total` yet.
// Rethrows an error of pinning at the end.
template <typename Batch>
Counted run_threads(const Run& run, const Batch& batch) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(run.cores.size());
  std::vector<uint64_t> batches(run.cores.size());
  std::vector<std::exception_ptr> errors(run.cores.size());
  std::barrier ready(static_cast<std::ptrdiff_t>(run.cores.size()));
  std::atomic<size_t> arrived{0};
  alignas(64) std::atomic<bool> has_ended{false};
  const auto count_until_end = [&](size_t thread, auto work) {
    uint64_t counted = 0;
    const Clock::time_point start = Clock::now();
    do {
      batch(thread, work);
      ++counted;
    } while (counted < run.batches && !has_ended.load(std::memory_order_relaxed));
    const Clock::time_point end = Clock::now();
    has_ended = true;
    seconds[thread] = std::chrono::duration<double>(end - start).count();
    batches[thread] = counted;
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < run.cores.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          pin_to(run.cores[i]);
        } catch (...) {  // the other threads still wait for this one
          errors[i] = std::current_exception();
        }
        // A barrier puts threads to sleep and wakes them one by one; the spin starts them together.
        ready.arrive_and_wait();
        ++arrived;
        while (arrived < run.cores.size()) {
        }
        if (run.work == 0) {
          count_until_end(i, NoWork{});
        } else {
          count_until_end(i, Work{run.work});
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  return {std::accumulate(seconds.begin(), seconds.end(), 0.0),
          kBatch * std::accumulate(batches.begin(), batches.end(), uint64_t{0}), 0};
}
