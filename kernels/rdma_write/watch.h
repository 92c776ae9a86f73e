// End of a wait by a time limit, or by an error in another thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

// Nothing completed within the time limit.
struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Another thread has failed; its error is the one to report.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped because another thread failed") {}
};

// Shared by the threads of one transfer.
struct Limits {
  double seconds;  // without any completion
  std::atomic<bool> stop{false};
};

// Counts one thread's empty polls. `what` it waits for is part of the error. `limits` outlive it.
class Watch {
 public:
  Watch(const Limits& limits, std::string what) : limits_(limits), what_(std::move(what)) {}

  // Call after every poll with its outcome. Throws TimedOut, or Stopped if another thread has
  // failed; yields the core now and then.
  void found(bool anything) {
    if (anything) {
      idle_ = 0;
      return;
    }
    // Rare, so that a poll reads no clock. With more threads than cores, the peer must run, too.
    if (++idle_ % kIdlePollsPerLook == 0) {
      look();
    }
  }

 private:
  static constexpr unsigned kIdlePollsPerLook = 256;
  using Clock = std::chrono::steady_clock;

  void look() {
    sched_yield();
    if (limits_.stop.load(std::memory_order_relaxed)) {
      throw Stopped();
    }
    const auto now = Clock::now();
    if (idle_ == kIdlePollsPerLook) {
      since_ = now;
    }
    const std::chrono::duration<double> waited = now - since_;
    if (waited.count() > limits_.seconds) {
      throw TimedOut(what_ + ": nothing completed for " + std::to_string(waited.count()) + " s");
    }
  }

  const Limits& limits_;
  std::string what_;
  unsigned idle_ = 0;
  Clock::time_point since_;
};
