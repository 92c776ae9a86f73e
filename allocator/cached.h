// What phases 1 and 2 share: freed memory is kept by its size, up to 1 GiB in all.
//
// As in the write-up, what is beyond 1 GiB goes to the driver at once, nothing is ever taken out of
// the cache to make room, neither for another size nor when memory runs out, and streams are not
// known.
#pragma once

#include <unordered_map>
#include <vector>

#include "counted.h"

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kMaxCached = size_t{1} << 30;

// The size of the block for a request of `bytes`; each variant defines it.
size_t size_of(size_t bytes);

class CachedAllocator : public CountedAllocator {
 public:
  using CountedAllocator::CountedAllocator;

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    const size_t size = size_of(bytes);
    void* ptr = nullptr;
    std::vector<void*>& list = free_[size];
    if (list.empty()) {
      ptr = from_driver(size, place.device);
    } else {
      ptr = list.back();
      list.pop_back();
      cached_ -= size;
    }
    live_.emplace(ptr, size);
    count_allocation(size);
    return ptr;
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr == nullptr) {
      return;
    }
    const auto found = live_or_throw(live_, ptr);
    const size_t size = found->second;
    live_.erase(found);
    count_free(size);
    if (cached_ + size > kMaxCached) {
      source_.release(place.device, ptr);
      return;
    }
    free_[size].push_back(ptr);
    cached_ += size;
  }

 private:
  std::unordered_map<size_t, std::vector<void*>> free_;
  std::unordered_map<void*, size_t> live_;
  size_t cached_ = 0;
};

}  // namespace
