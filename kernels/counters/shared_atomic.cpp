// All threads increment one atomic.
#include "count.h"

namespace {

struct alignas(64) Counters {
  std::atomic<uint64_t> finished{0};
};

}  // namespace

Counted count(const Run& run) {
  Counters counters;
  Counted counted = run_threads(run, [&](size_t, auto work) {
    count_batch(work, [&] { counters.finished.fetch_add(1, std::memory_order_relaxed); });
  });
  counted.total = counters.finished;
  return counted;
}
