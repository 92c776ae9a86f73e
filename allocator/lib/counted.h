// The base of allocators that cannot be bounded: the write-up's phases, which know one device, and
// wrappers of other pools.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "size_cache.h"
#include "unbounded.h"

// One thread, no streams. A derived class counts each block that it hands out; `requested` stays 0.
class CountedAllocator : public Allocator {
 public:
  explicit CountedAllocator(MemorySource& source) : source_(source) {}

  void set_limit(int /*device*/, size_t /*bytes*/) override { refuse_limit(); }

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
  // New memory from the source; throws OutOfMemory where it has none.
  void* from_driver(size_t bytes, int device) {
    void* ptr = source_.allocate(device, bytes);
    if (ptr == nullptr) {
      throw OutOfMemory("out of memory: the driver has no " + std::to_string(bytes) + " B");
    }
    return ptr;
  }

  // A live block of `size` bytes from the cache, else from the driver.
  void* from_cache(SizeCache& cache, size_t size, int device) {
    void* ptr = cache.take(size);
    return add_live(ptr != nullptr ? ptr : from_driver(size, device), size);
  }

  // Frees a live block into the cache; to the driver where that is full.
  void to_cache(SizeCache& cache, void* ptr, int device) {
    if (!cache.keep(ptr, remove_live(ptr))) {
      source_.release(device, ptr);
    }
  }

  // Counts a block that is handed out.
  void* add_live(void* ptr, size_t size) {
    live_.emplace(ptr, size);
    count_allocation(size);
    return ptr;
  }

  // Counts a block that is freed; returns its size. Throws InvalidPointer.
  size_t remove_live(void* ptr) {
    const auto found = live_.find(ptr);
    if (found == live_.end()) {
      throw InvalidPointer("free: expected a live allocation, got an unknown or freed pointer");
    }
    const size_t size = found->second;
    live_.erase(found);
    count_free(size);
    return size;
  }

  // The same without a table of live blocks.
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
  std::unordered_map<void*, size_t> live_;  // sizes of live blocks by address
};
