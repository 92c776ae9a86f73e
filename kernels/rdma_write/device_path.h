// The thread of one device, with counters that it shares with no other thread.
#pragma once

#include "counters.h"
#include "operations.h"

// Posts and counts the writes of one device. A subclass adds turn(), which polls and posts.
// `Writes_` has what posting needs: Operations, or a variant's replacement for it.
template <typename Counters_, typename Writes_ = Operations>
class DevicePath {
 public:
  using Counters = Counters_;

  DevicePath(Device& device, Transfer& transfer, Counters& counters)
      : device_(device), transfer_(transfer), counters_(counters), writes_(device, transfer) {}

 protected:
  // To be called after each completion, with their number: shows progress, and counts the devices
  // that are finished.
  void report(const uint64_t& finished) {
    if (finished % kReportEvery == 0) {
      transfer_.progress.report(sum(counters_.posted), sum(counters_.finished));
    }
    if (finished == device_.writes()) {
      ++counters_.finished_devices;
    }
  }

  Device& device_;
  Transfer& transfer_;
  Counters& counters_;
  Writes_ writes_;
};

// Thread `i` works on device `i`, pinned to its core, until all devices are finished.
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
