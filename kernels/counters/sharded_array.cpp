// Each thread increments its element of an array; eight elements share a cache line.
#include "count.h"

struct alignas(64) Counters {
  std::array<std::atomic<uint64_t>, kMaxThreads> finished{};
};

Counted count(const Run& run) {
  Counters counters;
  const double seconds = time_threads(run, [&](size_t thread) {
    std::atomic<uint64_t>& counter = counters.finished[thread];
    for (uint64_t i = 0; i < run.increments; ++i) {
      work(run.work);
      counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  });
  uint64_t total = 0;
  for (const auto& counter : counters.finished) {
    total += counter;
  }
  return {seconds, total};
}
