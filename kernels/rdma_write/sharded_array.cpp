// Each thread counts in its own element of two arrays, which share cache lines.
#include "sharded.h"

namespace {

struct Element {
  std::atomic<uint64_t> value{0};

  // Only its own thread writes an element, so reading and writing need not be one step.
  uint64_t increment() {
    const uint64_t next = value.load(std::memory_order_relaxed) + 1;
    value.store(next, std::memory_order_relaxed);
    return next;
  }
};

using Counters = ShardedCounters<Element>;
using Path = ShardedPath<Counters>;

}  // namespace

void write_pages(Transfer& transfer) {
  Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
