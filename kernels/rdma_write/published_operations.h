// Operations whose counts are published. Each variant defines Path::turn().
#pragma once

#include "published.h"

namespace {

constexpr int kBatch = 16;  // writes between two polls

class Path {
 public:
  using Counters = PublishedCounters;

  Path(Device& device, Transfer& transfer, Counters& counters)
      : device_(device),
        transfer_(transfer),
        counters_(counters),
        writes_(device, transfer.limits) {}

  inline void turn();  // polls and posts

 private:
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
  Operations writes_;
  uint64_t posted_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace

void write_pages(Transfer& transfer) {
  Path::Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
