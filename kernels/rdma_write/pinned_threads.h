// Threads with counters of their own: a thread for each device, each on a core of its own.
#pragma once

#include "counters.h"
#include "transfer.h"

// Thread `i`, pinned to its core, takes turns with its device's `Path` until all devices are
// finished.
template <typename Path>
struct PinnedThread {
  Transfer& transfer;
  typename Path::Counters& counters;

  void operator()(size_t i) const {
    pin_to(transfer.cores[i]);
    Path path(transfer.devices[i], transfer, counters);
    while (counters.finished_devices < transfer.devices.size()) {
      path.turn();
    }
  }
};
