// Work that several threads share.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

// Calls work(0) to work(items - 1), each once, by `threads` threads: the caller and others.
// Rethrows the first exception once all threads have ended; no further items are begun after it.
template <class Work>
void in_threads(int threads, size_t items, const Work& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto draw = [&] {
    try {
      for (size_t item = next++; item < items; item = next++) {
        work(item);
      }
    } catch (...) {
      next = items;
      const std::lock_guard<std::mutex> lock(mutex);
      error = error ? error : std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) {
      others.emplace_back(draw);
    }
    draw();
  }
  if (error) {
    std::rethrow_exception(error);
  }
}
