// Writes as the write-up posts them: each an operation of its own, allocated, with a callback.
#pragma once

#include <functional>
#include <list>
#include <vector>

#include "transfer.h"

// Of one device, which one thread owns: it posts, polls and runs the callbacks. Device, limits and
// memory outlive them. Throws FabricError, TimedOut and Stopped.
class Operations {
 public:
  Operations(Device& device, const Limits& limits)
      : device_(device),
        queues_(device.rails.size()),
        watch_(limits, "device " + std::to_string(device.index)) {}

  // Queues the device's next write, which must be there, and posts what the provider takes. A poll
  // calls `done` when the write is complete.
  void post(std::function<void()> done) { progress(queue(std::move(done))); }

  // Queues the device's next write; a later poll posts it. Returns its rail.
  size_t queue(std::function<void()> done) {
    const Write write = device_.next();
    queues_[write.rail].waiting.push_back({{}, write, std::move(done), {}});
    return write.rail;
  }

  // Posts what waits, and calls back what has completed.
  void poll() {
    bool anything = false;
    for (size_t rail = 0; rail < queues_.size(); ++rail) {
      progress(rail);
      for (const fi_cq_data_entry& entry : device_.rails[rail].endpoint->read_completions()) {
        anything = true;
        auto* operation = static_cast<Operation*>(entry.op_context);
        operation->done();
        queues_[rail].posted.erase(operation->self);
      }
    }
    watch_.found(anything);
  }

 private:
  struct Operation {
    fi_context2 context;  // the provider's, while the write is under way
    Write write;
    std::function<void()> done;
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
