// All threads increment one atomic.
#include "count.h"

namespace {

struct alignas(64) Counters {
  std::atomic<uint64_t> finished{0};
};

}  // namespace

Counted count(const Run& run) {
  Counters counters;
  const double seconds = time_threads(run, [&](size_t) {
    for (uint64_t i = 0; i < run.increments; ++i) {
      work(run.work);
      counters.finished.fetch_add(1, std::memory_order_relaxed);
    }
  });
  return {seconds, counters.finished};
}
