// A lock for critical sections of some 10 ns: one atomic exchange to lock, one store to unlock.
#pragma once

#include <atomic>
#include <thread>

// For std::lock_guard; not recursive, and not fair.
class SpinLock {
 public:
  void lock() {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire); ++spins) {
      // Reading keeps the cache line shared until it changes. The holder may be in a driver call or
      // descheduled, so yield after a while.
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
