// Each thread counts in a variable of its own and publishes it once in kPublishEvery increments.
#include "count.h"

namespace {

constexpr uint64_t kPublishEvery = 256;

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
    std::atomic<uint64_t>& published = counters.finished[thread].value;
    uint64_t own = 0;
    for (uint64_t i = 0; i < run.increments; ++i) {
      work(run.work);
      ++own;
      asm volatile("" : "+r"(own));  // or the compiler would add up many at once
      if (own % kPublishEvery == 0) {
        published.store(own, std::memory_order_relaxed);
      }
    }
    published.store(own, std::memory_order_relaxed);
  });
  uint64_t total = 0;
  for (const Padded& element : counters.finished) {
    total += element.value;
  }
  return {seconds, total};
}
