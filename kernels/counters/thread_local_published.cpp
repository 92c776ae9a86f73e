// Each thread counts in a register and publishes the count every kPublishEvery increments.
#include "padded.h"

constexpr uint64_t kPublishEvery = 256;

Counted count(const Run& run) {
  PaddedCounters counters;
  const double seconds = time_threads(run, [&](size_t thread) {
    std::atomic<uint64_t>& published = counters.finished[thread].value;
    uint64_t finished = 0;
    for (uint64_t i = 0; i < run.increments; ++i) {
      work(run.work);
      ++finished;
      asm volatile("" : "+r"(finished));  // or the compiler would merge many increments
      if (finished % kPublishEvery == 0) {
        published.store(finished, std::memory_order_relaxed);
      }
    }
    published.store(finished, std::memory_order_relaxed);
  });
  return {seconds, counters.total()};
}
