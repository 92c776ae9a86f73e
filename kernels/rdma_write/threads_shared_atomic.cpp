// One thread per device, on any core; all count in the same two atomics.
#include "shared.h"

using Counters = SharedCounters<std::atomic<uint64_t>>;
using Path = SharedPath<Counters>;

void write_pages(Transfer& transfer) {
  Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, [&](size_t i) {
    Path path(transfer.devices[i], transfer, counters);
    while (counters.finished < transfer.writes) {
      path.turn();
    }
  });
}
