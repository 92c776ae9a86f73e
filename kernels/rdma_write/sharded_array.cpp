// Each thread counts in its own element of two arrays, which share cache lines.
#include "operations.h"

namespace {

struct alignas(64) Counters {
  std::array<std::atomic<uint64_t>, kMaxDevices> posted{};
  std::array<std::atomic<uint64_t>, kMaxDevices> finished{};
  std::atomic<uint64_t> finished_devices{0};
};

// Only its own thread writes an element, so reading and writing need not be one step.
uint64_t increment(std::atomic<uint64_t>& element) {
  const uint64_t value = element.load(std::memory_order_relaxed) + 1;
  element.store(value, std::memory_order_relaxed);
  return value;
}

uint64_t sum(const std::array<std::atomic<uint64_t>, kMaxDevices>& elements) {
  uint64_t total = 0;
  for (const auto& element : elements) {
    total += element.load(std::memory_order_relaxed);
  }
  return total;
}

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
      increment(counters_.posted[device_.index]);
    }
  }

 private:
  void complete() {
    const uint64_t finished = increment(counters_.finished[device_.index]);
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

}  // namespace

void write_pages(Transfer& transfer) {
  Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, [&](size_t i) {
    pin_to(transfer.cores[i]);
    Path path(transfer.devices[i], transfer, counters);
    while (counters.finished_devices < transfer.devices.size()) {
      path.turn();
    }
  });
}
