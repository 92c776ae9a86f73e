// Each thread counts in variables of its own and publishes them once in kPublishEvery completions.
#include "operations.h"

namespace {

constexpr uint64_t kPublishEvery = 256;

struct alignas(64) Padded {
  std::atomic<uint64_t> value{0};
};

struct alignas(64) Counters {
  std::array<Padded, kMaxDevices> posted{};
  std::array<Padded, kMaxDevices> finished{};
  alignas(64) std::atomic<uint64_t> finished_devices{0};
};

uint64_t sum(const std::array<Padded, kMaxDevices>& elements) {
  uint64_t total = 0;
  for (const Padded& element : elements) {
    total += element.value.load(std::memory_order_relaxed);
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
      ++posted_;
    }
  }

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
  Operations operations_;
  uint64_t posted_ = 0;
  uint64_t finished_ = 0;
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
