// Threads that count: each does some work, increments a counter, and again. workload.py calls it
// through bindings.cpp.
#pragma once

#include <pthread.h>

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

constexpr size_t kMaxThreads = 256;

struct Run {
  std::vector<int> cores;  // a thread on each
  uint64_t increments;     // of each thread
  uint64_t work;           // multiplications between two increments, each waiting for the last
};

struct Counted {
  double seconds;  // from the common start until the last thread was done
  uint64_t total;  // of all threads, read when they were done
};

// Counts as the variant does, with 1 to kMaxThreads threads; each variant defines it. Throws
// std::runtime_error where a thread cannot be pinned.
Counted count(const Run& run);

// Keeps the calling thread on this core; throws std::runtime_error where it may not run there.
inline void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  const int status = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (status != 0) {
    throw std::runtime_error("pinning to core " + std::to_string(core) + ": " + strerror(status));
  }
}

// Takes as long as so many multiplications one after the other.
inline void work(uint64_t multiplications) {
  uint64_t value = 1;
  for (uint64_t i = 0; i < multiplications; ++i) {
    value *= 6364136223846793005U;
    asm volatile("" : "+r"(value));  // or the compiler would leave the loop out
  }
}

// Runs body(thread) in a thread on every core, all starting together: the seconds from the first
// start to the last end. `body` must not throw. Errors of pinning are thrown once all have ended.
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
        } catch (...) {  // the others wait for this one all the same
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
