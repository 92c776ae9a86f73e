// Counting threads: each alternates between work and an increment. workload.py calls them through
// bindings.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../common/pin_to.h"

constexpr size_t kMaxThreads = 256;

struct Run {
  std::vector<int> cores;  // one thread on each
  uint64_t increments;     // per thread
  uint64_t work;           // dependent multiplications between two increments
};

struct Counted {
  double seconds;  // from the common start to the end of the last thread
  uint64_t total;  // sum of all threads, read after their end
};

// Counts with 1 to kMaxThreads threads; each variant defines it. Throws std::runtime_error if a
// thread cannot be pinned.
Counted count(const Run& run);

// Executes dependent multiplications.
inline void work(uint64_t multiplications) {
  uint64_t value = 1;
  for (uint64_t i = 0; i < multiplications; ++i) {
    value *= 6364136223846793005U;
    asm volatile("" : "+r"(value));  // or the compiler would remove the loop
  }
}

// Runs body(thread) in one thread per core, all starting together. Returns the seconds from the
// first start to the last end. `body` must not throw. Rethrows an error of pinning at the end.
template <typename Body>
double time_threads(const Run& run, const Body& body) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> starts(run.cores.size());
  std::vector<Clock::time_point> ends(run.cores.size());
  std::vector<std::exception_ptr> errors(run.cores.size());
  std::barrier ready(static_cast<std::ptrdiff_t>(run.cores.size()));
  std::atomic<size_t> arrived{0};
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
        starts[i] = Clock::now();
        body(i);
        ends[i] = Clock::now();
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  const std::chrono::duration<double> elapsed =
      *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
  return elapsed.count();
}
