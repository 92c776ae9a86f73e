// A lock for sections of some ten nanoseconds: one atomic exchange to take it, one store to let go.
#pragma once

#include <atomic>
#include <thread>

// For std::lock_guard; not recursive, and not fair.
class SpinLock {
 public:
  void lock() {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire); ++spins) {
      // Reading keeps the cache line shared until it changes. The holder may be inside a call of
      // the driver, or not running at all, so after a while its core is offered to it.
      while (locked_.load(std::memory_order_relaxed)) {
        if (++spins < kSpins) {
          __builtin_ia32_pause();
        } else {
          std::this_thread::yield();
        }
      }
    }
  }

  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 200;
  std::atomic<bool> locked_{false};
};
