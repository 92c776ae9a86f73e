// Each thread increments its element of an array; eight elements share a cache line.
#include "count.h"

struct alignas(64) Counters {
  std::array<std::atomic<uint64_t>, kMaxThreads> finished{};
};

Counted count(const Run& run) {
  Counters counters;
  Counted counted = run_threads(run, [&](size_t thread, auto work) {
    std::atomic<uint64_t>& counter = counters.finished[thread];
    count_batch(work, [&] {
      counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    });
  });
  for (const auto& counter : counters.finished) {
    counted.total += counter;
  }
  return counted;
}
