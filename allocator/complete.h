// Phase 5 with all duties that PyTorch's allocator has.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "dropin.h"

namespace dropin {

// A trace that can be switched on at any time, and until then costs a branch. PyTorch's is the
// same: record_trace in c10/cuda/CUDACachingAllocator.cpp begins with
// `if (!record_history && trace_trackers_.empty()) return;`, and record_history is false until
// torch.cuda.memory._record_memory_history.
class SwitchedTrace {
 public:
  void allocated(const HeapBlock& block) {
    if (is_on()) {
      ring().allocated(block);
    }
  }
  void freed(const HeapBlock& block) {
    if (is_on()) {
      ring().freed(block);
    }
  }
  void grown(const Side& side, size_t bytes) {
    if (is_on()) {
      ring().grown(side, bytes);
    }
  }
  void returned(const Side& side, size_t bytes) {
    if (is_on()) {
      ring().returned(side, bytes);
    }
  }

  // Whether events are recorded from now on. Any thread may say so: a copy has the entries of its
  // time, and the switch of what it is copied from.
  void record(bool on) { on_->store(on, std::memory_order_relaxed); }

  // Those of the ring, also after it was switched off.
  std::vector<TraceRing::Entry> entries() const {
    return ring_ ? ring_->entries() : std::vector<TraceRing::Entry>();
  }

 private:
  bool is_on() const { return __builtin_expect(on_->load(std::memory_order_relaxed), 0); }

  // Takes no memory before it is needed.
  TraceRing& ring() { return ring_ ? *ring_ : ring_.emplace(); }

  std::shared_ptr<std::atomic<bool>> on_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<TraceRing> ring_;
};

class Complete : public Dropin<std::mutex, SizeStatistics, SwitchedTrace> {
 public:
  using Dropin::Dropin;

  // Whether the trace of a device is recorded from now on; at first it is not. What is recorded
  // stays.
  void record_trace(int device, bool on) { duty<SwitchedTrace>(device).record(on); }

  // At most TraceRing::kEntries, the oldest first.
  std::vector<TraceRing::Entry> trace(int device) { return duty<SwitchedTrace>(device).entries(); }
};

}  // namespace dropin
