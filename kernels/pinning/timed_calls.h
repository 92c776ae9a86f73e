// Times of CUDA calls, each with the state of its thread: on a core, or waiting for one.
#pragma once

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "neighbour.h"

constexpr size_t kMaxTimedCalls = size_t{1} << 20;
constexpr int64_t kUnknown = -1;

// The scheduler's counters of one thread, which must be the one that reads them.
class ThreadCounters {
 public:
  ThreadCounters() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ThreadCounters(const ThreadCounters&) = delete;
  ThreadCounters& operator=(const ThreadCounters&) = delete;
  ~ThreadCounters() {
    if (file_ >= 0) {
      close(file_);
    }
  }

  // Nanoseconds on a core. The first number of schedstat is up to a timer tick behind.
  int64_t running_ns() const {
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
  }

  // Nanoseconds in the queue of a core. kUnknown where the system does not count them.
  int64_t queued_ns() const {
    char text[96] = {};
    unsigned long long running = 0, queued = 0;
    const bool is_read = file_ >= 0 && pread(file_, text, sizeof text - 1, 0) > 0 &&
                         std::sscanf(text, "%llu %llu", &running, &queued) == 2;
    return is_read ? static_cast<int64_t>(queued) : kUnknown;
  }

 private:
  int file_;
};

// Begin and end by the monotonic clock; time on a core and time in the queue of a core meanwhile.
struct TimedCall {
  int64_t begin_ns;
  int64_t end_ns;
  int64_t running_ns;
  int64_t queued_ns;  // kUnknown where the system does not count it
};

// The counters of the calling thread.
inline const ThreadCounters& thread_counters() {
  thread_local const ThreadCounters counters;
  return counters;
}

// Makes a call. The counters are read just outside of its time. The thread may wait for a core
// there, too, so that time is subtracted.
template <class Call>
TimedCall timed(const Call& call) {
  const ThreadCounters& counters = thread_counters();
  const int64_t before = now_ns();
  const int64_t queued = counters.queued_ns();
  const int64_t running = counters.running_ns();
  const int64_t begin = now_ns();
  call();
  const int64_t end = now_ns();
  const int64_t ran = counters.running_ns() - running;
  const int64_t queued_later = counters.queued_ns();
  const int64_t outside = (begin - before) + (now_ns() - end);
  const bool is_known = queued != kUnknown && queued_later != kUnknown;
  const int64_t waited = std::max<int64_t>(queued_later - queued - outside, 0);
  return {begin, end, ran, is_known ? waited : kUnknown};
}

// A thread that repeats cudaMalloc and cudaFree as Neighbour does, with the thread's state.
class TimedNeighbour {
 public:
  // Starts the thread. Throws std::runtime_error with CUDA's message.
  TimedNeighbour() : stream_(new_stream()) {
    calls_.reserve(kMaxTimedCalls);
    for (int i = 0; i < kFirstCalls; ++i) {
      allocate_and_free();
    }
    calls_.clear();
    int gpu = 0;
    check(cudaGetDevice(&gpu), "the current device");
    thread_ = std::thread([this, gpu] { run(gpu); });
  }
  TimedNeighbour(const TimedNeighbour&) = delete;
  TimedNeighbour& operator=(const TimedNeighbour&) = delete;
  ~TimedNeighbour() { end(); }

  // Ends the thread. Returns all calls in order. Throws what a call threw.
  const std::vector<TimedCall>& stop() {
    end();
    if (error_) {
      std::rethrow_exception(error_);
    }
    return calls_;
  }

 private:
  void run(int gpu) {
    try {
      check(cudaSetDevice(gpu), "the device of a thread");
      while (!stops_ && calls_.size() + 2 <= kMaxTimedCalls) {
        allocate_and_free();
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void end() {
    stops_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void allocate_and_free() {
    void* found = nullptr;
    calls_.push_back(
        timed([&] { check(cudaMalloc(&found, kAllocatedBytes), "cudaMalloc of the neighbour"); }));
    calls_.push_back(timed([&] { check(cudaFree(found), "cudaFree of the neighbour"); }));
  }

  std::shared_ptr<CUstream_st> stream_;  // Neighbour's context has one, too
  std::vector<TimedCall> calls_;
  std::atomic<bool> stops_{false};
  std::exception_ptr error_;
  std::thread thread_;
};
