// A thread for each device, wherever the scheduler puts it; all count in the same two atomics.
#include "operations.h"

namespace {

struct alignas(64) Counters {
  std::atomic<uint64_t> posted{0};
  std::atomic<uint64_t> finished{0};
};

class Path {
 public:
  Path(Device& device, Transfer& transfer, Counters& counters)
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

void write_pages(Transfer& transfer) {
  Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, [&](size_t i) {
    Path path(transfer.devices[i], transfer, counters);
    while (counters.finished < transfer.writes) {
      path.turn();
    }
  });
}
