// One thread per device, with propagation of the first error.
#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "../common/pin_to.h"
#include "watch.h"

// Calls work(i) in one thread for each i below `count`, and joins them. The first error sets
// limits.stop, which ends the other threads at their next wait, and is rethrown.
template <typename Work>
void in_threads(size_t count, Limits& limits, const Work& work) {
  std::exception_ptr error;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          work(i);
        } catch (const Stopped&) {
        } catch (...) {
          limits.stop = true;
          const std::lock_guard lock(mutex);
          error = error ? error : std::current_exception();
        }
      });
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}
