// Contexts come from a pool that bounds what is under way; no operation is allocated or called
// back.
#include "published.h"

namespace {

constexpr int kBatch = 16;
constexpr size_t kContexts = 256;  // of a rail

class Path {
 public:
  using Counters = PublishedCounters;

  Path(Device& device, Transfer& transfer, Counters& counters)
      : device_(device),
        transfer_(transfer),
        counters_(counters),
        pools_(device.rails.size()),
        watch_(transfer.limits, "device " + std::to_string(device.index)) {}

  void turn() {
    poll();
    for (int i = 0; i < kBatch && device_.has_next() && post(); ++i) {
      ++posted_;
    }
  }

 private:
  struct Pool {
    Pool() {
      for (fi_context2& context : contexts) {
        free.push_back(&context);
      }
    }
    std::vector<fi_context2> contexts = std::vector<fi_context2>(kContexts);
    std::vector<void*> free;
  };

  // Posts the next write; false where its rail has no context left or the provider is full.
  bool post() {
    const Write write = device_.write_of(device_.page);
    const auto& [endpoint, peer, remote, source] = device_.rails[write.rail];
    std::vector<void*>& free = pools_[write.rail].free;
    if (free.empty()) {
      return false;
    }
    const ssize_t status =
        fi_write(endpoint->ep(), write.source, device_.fill->page_bytes, source.descriptor, peer,
                 write.remote_address, remote.key, free.back());
    if (status == -FI_EAGAIN) {
      return false;
    }
    check(status, "fi_write");
    free.pop_back();
    ++device_.page;
    return true;
  }

  void poll() {
    bool anything = false;
    for (size_t rail = 0; rail < pools_.size(); ++rail) {
      for (const fi_cq_data_entry& entry : device_.rails[rail].endpoint->read_completions()) {
        anything = true;
        complete();
        pools_[rail].free.push_back(entry.op_context);
      }
    }
    watch_.found(anything);
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
  std::vector<Pool> pools_;  // [rails]
  Watch watch_;
  uint64_t posted_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace

void write_pages(Transfer& transfer) {
  Path::Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
