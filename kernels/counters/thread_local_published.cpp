// Each thread counts in a register and publishes the count after every batch.
#include "padded.h"

Counted count(const Run& run) {
  PaddedCounters counters;
  Counted counted = run_threads(run, [&](size_t thread, auto work) {
    std::atomic<uint64_t>& published = counters.finished[thread].value;
    uint64_t finished = published.load(std::memory_order_relaxed);
    count_batch(work, [&] {
      ++finished;
      asm volatile("" : "+r"(finished));  // or the compiler would merge the increments of a batch
    });
    published.store(finished, std::memory_order_relaxed);
  });
  counted.total = counters.total();
  return counted;
}
