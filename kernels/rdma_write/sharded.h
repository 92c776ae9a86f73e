// A path counts in its device's own elements of two arrays.
#pragma once

#include "operations.h"
#include "pinned_threads.h"

// Posts a device's writes one at a time. `Counters_` are ShardedCounters, and their elements have
// increment(), which returns the new value.
template <typename Counters_>
class ShardedPath {
 public:
  using Counters = Counters_;

  ShardedPath(Device& device, Transfer& transfer, Counters& counters)
      : device_(device),
        transfer_(transfer),
        counters_(counters),
        operations_(device, transfer.limits) {}

  void turn() {
    operations_.poll();
    if (device_.has_next()) {
      operations_.post([this] { complete(); });
      counters_.posted[device_.index].increment();
    }
  }

 private:
  void complete() {
    const uint64_t finished = counters_.finished[device_.index].increment();
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
  Operations operations_;
};
