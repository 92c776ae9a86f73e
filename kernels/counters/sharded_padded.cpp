// Each thread increments its own element of an array, each on a cache line of its own.
#include "count.h"

namespace {

struct alignas(64) Padded {
  std::atomic<uint64_t> value{0};
};

struct alignas(64) Counters {
  std::array<Padded, kMaxThreads> finished{};
};

}  // namespace

Counted count(const Run& run) {
  Counters counters;
  const double seconds = time_threads(run, [&](size_t thread) {
    std::atomic<uint64_t>& own = counters.finished[thread].value;
    for (uint64_t i = 0; i < run.increments; ++i) {
      work(run.work);
      own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  });
  uint64_t total = 0;
  for (const Padded& element : counters.finished) {
    total += element.value;
  }
  return {seconds, total};
}
