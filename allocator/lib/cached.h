// Phases 1 and 2 but for the size of a block: every size is cached. Streams are unknown.
#pragma once

#include "counted.h"
#include "size_cache.h"

namespace {

// The block size for a request of `bytes`; each variant defines it.
size_t size_of(size_t bytes);

class CachedAllocator : public CountedAllocator {
 public:
  using CountedAllocator::CountedAllocator;

  void* allocate(size_t bytes, Place place) override {
    return bytes == 0 ? nullptr : from_cache(cache_, size_of(bytes), place.device);
  }

  void deallocate(void* ptr, Place place) override {
    if (ptr != nullptr) {
      to_cache(cache_, ptr, place.device);
    }
  }

 private:
  SizeCache cache_;
};

}  // namespace
