// Contexts come from a pool, which limits the writes in flight. A write allocates nothing and has
// no callback.
#include "published.h"

namespace {

constexpr int kBatch = 16;  // writes between two polls
constexpr size_t kContextsPerRail = 256;

struct ContextPool {
  ContextPool() {
    for (fi_context2& context : contexts) {
      free.push_back(&context);
    }
  }
  std::vector<fi_context2> contexts = std::vector<fi_context2>(kContextsPerRail);
  std::vector<void*> free;
};

struct Contexts {
  Contexts(const Device& device, const Transfer& transfer)
      : pools(device.rails.size()),
        watch(transfer.limits, "device " + std::to_string(device.index)) {}

  std::vector<ContextPool> pools;  // [rails]
  Watch watch;
};

class Path : public DevicePath<PublishedCounters, Contexts> {
 public:
  using DevicePath::DevicePath;

  void turn() {
    poll();
    for (int i = 0; i < kBatch && device_.has_next() && post(); ++i) {
      ++posted_;
    }
  }

 private:
  // Posts the next write; false where its rail has no free context or the provider's queue is full.
  bool post() {
    const Write write = device_.write_of(device_.page);
    const auto& [endpoint, peer, remote, source] = device_.rails[write.rail];
    std::vector<void*>& free = writes_.pools[write.rail].free;
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
    bool found = false;
    for (size_t rail = 0; rail < writes_.pools.size(); ++rail) {
      for (const fi_cq_data_entry& entry : device_.rails[rail].endpoint->read_completions()) {
        found = true;
        complete();
        writes_.pools[rail].free.push_back(entry.op_context);
      }
    }
    writes_.watch.found(found);
  }

  void complete() {
    ++finished_;
    if (finished_ % kPublishEvery == 0) {
      counters_.posted[device_.index].value.store(posted_, std::memory_order_relaxed);
      counters_.finished[device_.index].value.store(finished_, std::memory_order_relaxed);
    }
    report(finished_);
  }

  uint64_t posted_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace

void write_pages(Transfer& transfer) {
  Path::Counters counters;
  in_threads(transfer.devices.size(), transfer.limits, PinnedThread<Path>{transfer, counters});
}
