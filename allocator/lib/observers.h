// Statistics and a trace as PyTorch's allocator keeps them. A variant names its observers, so that
// the cost of each can be measured separately.
//
// The device notifies each observer under its lock: `allocated` and `freed` for a block, `grown`
// and `returned` for a segment.
#pragma once

#include <x86intrin.h>

#include <array>
#include <vector>

#include "heap.h"

namespace dropin {

// Current value, peak, and totals of all increases and decreases.
struct Count {
  uint64_t current = 0, peak = 0, added = 0, removed = 0;

  void add(uint64_t amount) {
    current += amount;
    added += amount;
    peak = std::max(peak, current);
  }
  void remove(uint64_t amount) {
    current -= amount;
    removed += amount;
  }
};

// Counts and bytes in total and for small and large segments, like torch.cuda.memory_stats. Live
// allocations are also counted by the power of two of their block's size.
class SizeStatistics {
 public:
  struct Kind {
    Count allocations, allocated_bytes, requested_bytes, segments, reserved_bytes;
  };

  void allocated(const HeapBlock& block) { count<&Count::add>(block); }
  void freed(const HeapBlock& block) { count<&Count::remove>(block); }

  void grown(const SegmentPool& segment_pool, size_t bytes) {
    for (Kind* kind : kinds_of(segment_pool.is_small)) {
      kind->segments.add(1);
      kind->reserved_bytes.add(bytes);
    }
  }

  void returned(const SegmentPool& segment_pool, size_t bytes) {
    for (Kind* kind : kinds_of(segment_pool.is_small)) {
      kind->segments.remove(1);
      kind->reserved_bytes.remove(bytes);
    }
  }

  Kind all, small, large;
  std::array<Count, 48> by_size{};

 private:
  template <void (Count::*Change)(uint64_t)>
  void count(const HeapBlock& block) {
    for (Kind* kind : kinds_of(block.segment_pool->is_small)) {
      (kind->allocations.*Change)(1);
      (kind->allocated_bytes.*Change)(block.size);
      (kind->requested_bytes.*Change)(block.requested);
    }
    (by_size[log2_of(block.size)].*Change)(1);
  }

  std::array<Kind*, 2> kinds_of(bool is_small) { return {&all, is_small ? &small : &large}; }
  static size_t log2_of(size_t size) { return size_t(63 - __builtin_clzll(size)); }
};

// The last kEntries events, to explain the state of memory afterwards.
class TraceRing {
 public:
  enum class Action : uint8_t { kAllocated, kFreed, kGrown, kReturned };
  struct Entry {
    Action action;
    const void* ptr;  // nullptr for segments
    size_t bytes;
    Stream stream;
    uint64_t ticks;  // of the time-stamp counter
  };

  void allocated(const HeapBlock& block) { add(Action::kAllocated, block); }
  void freed(const HeapBlock& block) { add(Action::kFreed, block); }
  void grown(const SegmentPool& segment_pool, size_t bytes) {
    add({Action::kGrown, nullptr, bytes, segment_pool.heap.stream, __rdtsc()});
  }
  void returned(const SegmentPool& segment_pool, size_t bytes) {
    add({Action::kReturned, nullptr, bytes, segment_pool.heap.stream, __rdtsc()});
  }

  // The recorded events, the oldest first.
  std::vector<Entry> entries() const {
    const uint64_t oldest = count_ > kEntries ? count_ - kEntries : 0;
    std::vector<Entry> all;
    for (uint64_t i = oldest; i < count_; ++i) {
      all.push_back(ring_[i % kEntries]);
    }
    return all;
  }

  static constexpr size_t kEntries = 4096;

 private:
  void add(Action action, const HeapBlock& block) {
    add({action, block.ptr, block.requested, block.segment_pool->heap.stream, __rdtsc()});
  }
  void add(const Entry& entry) { ring_[count_++ % kEntries] = entry; }

  std::vector<Entry> ring_ = std::vector<Entry>(kEntries);
  uint64_t count_ = 0;
};

}  // namespace dropin
