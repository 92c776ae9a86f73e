// A path of operations that publishes its counts.
#pragma once

#include "operations.h"
#include "published.h"

namespace {

// A variant adds turn(), which posts, and calls complete() for each write that is complete.
class PublishedOperations {
 public:
  using Counters = PublishedCounters;

  PublishedOperations(Device& device, Transfer& transfer, Counters& counters)
      : device_(device),
        transfer_(transfer),
        counters_(counters),
        operations_(device, transfer.limits) {}

 protected:
  void complete() {
    ++finished_;
    if (finished_ % kPublishEvery == 0) {
      counters_.posted[device_.index].value.store(posted_, std::memory_order_relaxed);
      counters_.finished[device_.index].value.store(finished_, std::memory_order_relaxed);
    }
    if (finished_ % kReportEvery == 0) {
      transfer_.progress.report(sum(counters_.posted), sum(counters_.finished));
    }
    if (finished_ == device_.writes()) {
      ++counters_.finished_devices;
    }
  }

  Device& device_;
  Transfer& transfer_;
  Counters& counters_;
  Operations operations_;
  uint64_t posted_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace
