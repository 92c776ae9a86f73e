// Each device has a counter in each of two arrays, beside those of other devices.
#include "sharded.h"

using Counters = ShardedCounters<Plain>;
using Path = ShardedPath<Counters>;

void write_pages(Transfer& transfer) {
  Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
