// No write requests a completion: a counter of the endpoint reports how many are complete.
#include "published.h"

bool counts_writes() { return true; }

namespace {

constexpr int kBatch = 16;                    // writes between two polls
constexpr uint64_t kMaxWritesInFlight = 256;  // of a rail

struct Window {
  uint64_t start;  // the endpoint's counter at the start
  uint64_t posted;
  uint64_t finished;
};

class Path {
 public:
  using Counters = PublishedCounters;

  Path(Device& device, Transfer& transfer, Counters& counters)
      : device_(device),
        transfer_(transfer),
        counters_(counters),
        watch_(transfer.limits, "device " + std::to_string(device.index)) {
    for (const Rail& rail : device.rails) {
      windows_.push_back({rail.endpoint->count_writes(), 0, 0});
    }
  }

  void turn() {
    poll();
    for (int i = 0; i < kBatch && device_.has_next() && post(); ++i) {
      ++posted_;
    }
  }

 private:
  // Posts the next write; false where its rail's window or the provider's queue is full.
  bool post() {
    const Write write = device_.write_of(device_.page);
    const auto& [endpoint, peer, remote, source] = device_.rails[write.rail];
    Window& window = windows_[write.rail];
    if (window.posted - window.finished == kMaxWritesInFlight) {
      return false;
    }
    const size_t bytes = device_.fill->page_bytes;
    const iovec from{const_cast<uint8_t*>(write.source), bytes};
    const fi_rma_iov to{write.remote_address, bytes, remote.key};
    void* descriptor = source.descriptor;
    const fi_msg_rma message{&from, &descriptor, 1, peer, &to, 1, nullptr, 0};
    const ssize_t status = fi_writemsg(endpoint->ep(), &message, 0);
    if (status == -FI_EAGAIN) {
      return false;
    }
    check(status, "fi_writemsg");
    ++window.posted;
    ++device_.page;
    return true;
  }

  void poll() {
    bool found = false;
    for (size_t rail = 0; rail < windows_.size(); ++rail) {
      Endpoint& endpoint = *device_.rails[rail].endpoint;
      Window& window = windows_[rail];
      const uint64_t finished = endpoint.count_writes() - window.start;
      for (; window.finished < finished; ++window.finished) {
        found = true;
        complete();
      }
    }
    if (!found) {
      for (const Rail& rail : device_.rails) {
        rail.endpoint->read_completions();  // a failed write still produces an entry
      }
    }
    watch_.found(found);
  }

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
  std::vector<Window> windows_;  // [rails]
  Watch watch_;
  uint64_t posted_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace

void write_pages(Transfer& transfer) {
  Path::Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
