// Each device has a counter in each of two arrays, on a separate cache line.
#include "sharded.h"

using Counters = ShardedCounters<Padded>;
using Path = ShardedPath<Counters>;

void write_pages(Transfer& transfer) {
  Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
