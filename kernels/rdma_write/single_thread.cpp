// One thread serves all devices in turn and counts in plain variables.
#include "shared.h"

using Counters = SharedCounters<uint64_t>;
using Path = SharedPath<Counters>;

void write_pages(Transfer& transfer) {
  Counters counters;
  std::list<Path> paths;
  for (Device& device : transfer.devices) {
    paths.emplace_back(device, transfer, counters);
  }
  while (counters.finished < transfer.writes) {
    for (Path& path : paths) {
      path.turn();
    }
  }
}
