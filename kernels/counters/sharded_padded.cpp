// Each thread increments its element of an array, padded to a cache line.
#include "padded.h"

Counted count(const Run& run) {
  PaddedCounters counters;
  Counted counted = run_threads(run, [&](size_t thread, auto work) {
    std::atomic<uint64_t>& counter = counters.finished[thread].value;
    count_batch(work, [&] {
      counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    });
  });
  counted.total = counters.total();
  return counted;
}
