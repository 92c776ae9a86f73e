// What the write-up's phases share: they know one device, and count what they hand out.
#pragma once

#include <algorithm>

#include "allocator.h"

// One thread, no streams. A derived class calls count_allocation and count_free with the bytes of
// the block, as large as it made it; `requested` stays 0.
class CountedAllocator : public Allocator {
 public:
  explicit CountedAllocator(MemorySource& source) : source_(source) {}

  Statistics statistics(int device) override {
    const SourceCounts counts = source_.counts(device);
    Statistics all = statistics_;
    all.reserved = counts.reserved;
    all.peak_reserved = counts.peak_reserved;
    all.driver_calls = counts.allocations + counts.frees;
    return all;
  }

  void reset_statistics(int device) override {
    source_.reset_counts(device);
    statistics_.peak_active = statistics_.active;
    statistics_.allocations = statistics_.frees = 0;
  }

 protected:
  // New memory of the source; throws OutOfMemory where it has none.
  void* from_driver(size_t bytes, int device) {
    void* ptr = source_.allocate(device, bytes);
    if (ptr == nullptr) {
      throw OutOfMemory("out of memory: the driver has no " + std::to_string(bytes) + " B");
    }
    return ptr;
  }

  void count_allocation(size_t size) {
    ++statistics_.allocations;
    statistics_.active += size;
    statistics_.peak_active = std::max(statistics_.peak_active, statistics_.active);
  }

  void count_free(size_t size) {
    ++statistics_.frees;
    statistics_.active -= size;
  }

  MemorySource& source_;

 private:
  Statistics statistics_;
};

// Where `ptr` is in a table of live allocations by address; throws InvalidPointer where it is not.
template <typename Table>
auto live_or_throw(Table& table, void* ptr) {
  const auto found = table.find(ptr);
  if (found == table.end()) {
    throw InvalidPointer("free: expected a live allocation, got an unknown or freed pointer");
  }
  return found;
}
