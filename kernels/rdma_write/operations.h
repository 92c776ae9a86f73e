// Writes as in the write-up: each an allocated operation with a callback.
#pragma once

#include <functional>
#include <list>
#include <vector>

#include "transfer.h"

// Writes of one device, for one thread, which posts, polls and runs the callbacks. Device, limits
// and memory outlive them. Throws FabricError, TimedOut and Stopped.
class Operations {
 public:
  Operations(Device& device, const Limits& limits)
      : device_(device),
        queues_(device.rails.size()),
        watch_(limits, "device " + std::to_string(device.index)) {}

  Operations(Device& device, const Transfer& transfer) : Operations(device, transfer.limits) {}

  // Queues the device's next write, which must exist, and posts queued writes until the provider's
  // queue is full. A poll calls `on_complete` once the write is complete.
  void post(std::function<void()> on_complete) { progress(queue(std::move(on_complete))); }

  // Queues the device's next write; a later poll posts it. Returns its rail.
  size_t queue(std::function<void()> on_complete) {
    const Write write = device_.next();
    queues_[write.rail].waiting.push_back({{}, write, std::move(on_complete), {}});
    return write.rail;
  }

  // Posts waiting writes, and runs the callbacks of completed ones.
  void poll() {
    bool found = false;
    for (size_t rail = 0; rail < queues_.size(); ++rail) {
      progress(rail);
      for (const fi_cq_data_entry& entry : device_.rails[rail].endpoint->read_completions()) {
        found = true;
        auto* operation = static_cast<Operation*>(entry.op_context);
        operation->on_complete();
        queues_[rail].posted.erase(operation->self);
      }
    }
    watch_.found(found);
  }

 private:
  struct Operation {
    fi_context2 context;  // for the provider, while the write is in flight
    Write write;
    std::function<void()> on_complete;
    std::list<Operation>::iterator self;
  };
  struct Queue {
    std::list<Operation> waiting;
    std::list<Operation> posted;
  };

  void progress(size_t rail) {
    auto& [waiting, posted] = queues_[rail];
    const auto& [endpoint, peer, remote, source] = device_.rails[rail];
    while (!waiting.empty()) {
      Operation& operation = waiting.front();
      const ssize_t status =
          fi_write(endpoint->ep(), operation.write.source, device_.fill->page_bytes,
                   source.descriptor, peer, operation.write.remote_address, remote.key, &operation);
      if (status == -FI_EAGAIN) {
        return;
      }
      check(status, "fi_write");
      operation.self = waiting.begin();
      posted.splice(posted.end(), waiting, waiting.begin());
    }
  }

  Device& device_;
  std::vector<Queue> queues_;  // [rails]
  Watch watch_;
};
