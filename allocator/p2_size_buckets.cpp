// Phase 2: sizes up to 16 MiB are rounded to a power of two, so that more requests find a fit.
//
// As in the write-up, a block can be almost twice as large as what was asked for, larger sizes are
// still matched exactly, and the cache keeps the first phase's limit and never makes room.
#include <unordered_map>
#include <vector>

#include "counted.h"

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kMaxCached = size_t{1} << 30;
constexpr size_t kMaxBucket = size_t{16} << 20;

size_t bucket(size_t bytes) {
  if (bytes > kMaxBucket) {
    return round_up(bytes, kAlignment);
  }
  size_t size = kAlignment;
  while (size < bytes) {
    size *= 2;
  }
  return size;
}

class SizeBuckets : public CountedAllocator {
 public:
  using CountedAllocator::CountedAllocator;

  void* allocate(size_t bytes, Place place) override {
    if (bytes == 0) {
      return nullptr;
    }
    const size_t size = bucket(bytes);
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

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<SizeBuckets>(source);
}
