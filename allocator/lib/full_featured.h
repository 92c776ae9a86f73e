// Phase 5 with the feature set of PyTorch's allocator.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "dropin.h"

namespace dropin {

// A trace that can be switched on at any time and costs one branch while it is off.
//
// PyTorch does the same: record_trace in c10/cuda/CUDACachingAllocator.cpp begins with
// `if (!record_history && trace_trackers_.empty()) return;`, and record_history is false until
// torch.cuda.memory._record_memory_history is called.
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
  void grown(const SegmentPool& segment_pool, size_t bytes) {
    if (is_on()) {
      ring().grown(segment_pool, bytes);
    }
  }
  void returned(const SegmentPool& segment_pool, size_t bytes) {
    if (is_on()) {
      ring().returned(segment_pool, bytes);
    }
  }

  // Switches recording on or off, from any thread. A copy has the entries at the time of the copy
  // and shares the switch of the original.
  void record(bool on) { on_->store(on, std::memory_order_relaxed); }

  // Entries of the ring, also after recording was switched off.
  std::vector<TraceRing::Entry> entries() const {
    return ring_ ? ring_->entries() : std::vector<TraceRing::Entry>();
  }

 private:
  bool is_on() const { return __builtin_expect(on_->load(std::memory_order_relaxed), 0); }

  // Allocated at the first event.
  TraceRing& ring() { return ring_ ? *ring_ : ring_.emplace(); }

  std::shared_ptr<std::atomic<bool>> on_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<TraceRing> ring_;
};

class FullFeatured : public Dropin<std::mutex, SizeStatistics, SwitchedTrace> {
 public:
  using Dropin::Dropin;

  // Switches the trace of a device on or off; it is off at first. Recorded entries are kept.
  void record_trace(int device, bool on) { observer<SwitchedTrace>(device).record(on); }

  // The last events, the oldest first; at most TraceRing::kEntries.
  std::vector<TraceRing::Entry> trace(int device) {
    return observer<SwitchedTrace>(device).entries();
  }
};

}  // namespace dropin
