// What PyTorch's allocator does beside serving each call. A step names the duties it has, so that
// each can be measured by itself.
//
// A duty is told what happens, under the lock of the device: allocated and freed of each block that
// is handed out and comes back, grown and returned of each segment.
#pragma once

#include <x86intrin.h>

#include <array>
#include <vector>

#include "heap.h"

namespace dropin {

// Now, at most, and all that was ever added and taken away.
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

// Numbers and bytes, over all and by the two kinds of segments, as torch.cuda.memory_stats, and
// live allocations by the power of two of their block's size.
class SizeStatistics {
 public:
  struct Kind {
    Count allocations, allocated_bytes, requested_bytes, segments, reserved_bytes;
  };

  void allocated(const HeapBlock& block) {
    for (Kind* kind : kinds_of(block.side->is_small)) {
      kind->allocations.add(1);
      kind->allocated_bytes.add(block.size);
      kind->requested_bytes.add(block.requested);
    }
    by_size[log2_of(block.size)].add(1);
  }

  void freed(const HeapBlock& block) {
    for (Kind* kind : kinds_of(block.side->is_small)) {
      kind->allocations.remove(1);
      kind->allocated_bytes.remove(block.size);
      kind->requested_bytes.remove(block.requested);
    }
    by_size[log2_of(block.size)].remove(1);
  }

  void grown(const Side& side, size_t bytes) {
    for (Kind* kind : kinds_of(side.is_small)) {
      kind->segments.add(1);
      kind->reserved_bytes.add(bytes);
    }
  }

  void returned(const Side& side, size_t bytes) {
    for (Kind* kind : kinds_of(side.is_small)) {
      kind->segments.remove(1);
      kind->reserved_bytes.remove(bytes);
    }
  }

  Kind all, small, large;
  std::array<Count, 48> by_size{};

 private:
  std::array<Kind*, 2> kinds_of(bool is_small) { return {&all, is_small ? &small : &large}; }
  static size_t log2_of(size_t size) { return size_t(63 - __builtin_clzll(size)); }
};

// The last things that happened, for whoever asks why memory is as it is.
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
  void grown(const Side& side, size_t bytes) {
    add({Action::kGrown, nullptr, bytes, side.heap.stream, __rdtsc()});
  }
  void returned(const Side& side, size_t bytes) {
    add({Action::kReturned, nullptr, bytes, side.heap.stream, __rdtsc()});
  }

  // At most kEntries, the oldest first.
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
    add({action, block.ptr, block.requested, block.side->heap.stream, __rdtsc()});
  }
  void add(const Entry& entry) { ring_[count_++ % kEntries] = entry; }

  std::vector<Entry> ring_ = std::vector<Entry>(kEntries);
  uint64_t count_ = 0;
};

}  // namespace dropin
