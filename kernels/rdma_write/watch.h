// What ends a wait that would not end: a limit of time, or an error in another thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

// Nothing completed for as long as the limits allow.
struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Another thread has failed; its error is the one to tell.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped because another thread failed") {}
};

// Shared by the threads of one transfer.
struct Limits {
  double seconds;  // without any completion
  std::atomic<bool> stop{false};
};

// One thread's count of polls that found nothing; `what` it waits for is said in the error. The
// limits outlive it.
class Watch {
 public:
  Watch(const Limits& limits, std::string what) : limits_(limits), what_(std::move(what)) {}

  // After every poll: whether it found anything. Throws TimedOut, or Stopped where another thread
  // has failed; now and then it yields the core.
  void found(bool anything) {
    if (anything) {
      idle_ = 0;
      return;
    }
    // Rare, so that a poll costs no clock; where threads outnumber cores the peer has to run, too.
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
