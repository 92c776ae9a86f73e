// All devices count in the same two counters.
#pragma once

#include "counters.h"
#include "operations.h"

namespace {

// Posts a device's writes one at a time. `Counters` are SharedCounters.
template <typename Counters>
class SharedPath {
 public:
  SharedPath(Device& device, Transfer& transfer, Counters& counters)
      : device_(device),
        transfer_(transfer),
        counters_(counters),
        operations_(device, transfer.limits) {}

  void turn() {
    operations_.poll();
    if (device_.has_next()) {
      operations_.post([this] { complete(); });
      ++counters_.posted;
    }
  }

 private:
  void complete() {
    const uint64_t finished = ++counters_.finished;
    if (finished % kReportEvery == 0) {
      transfer_.progress.report(counters_.posted, finished);
    }
  }

  Device& device_;
  Transfer& transfer_;
  Counters& counters_;
  Operations operations_;
};

}  // namespace
