// Each thread increments its element of an array, padded to a cache line.
#include "padded.h"

Counted count(const Run& run) {
  PaddedCounters counters;
  const double seconds = time_threads(run, [&](size_t thread) {
    std::atomic<uint64_t>& counter = counters.finished[thread].value;
    for (uint64_t i = 0; i < run.increments; ++i) {
      work(run.work);
      counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  });
  return {seconds, counters.total()};
}
