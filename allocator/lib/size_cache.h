// The cache of phases 1 to 3: freed memory is kept by block size, up to 1 GiB in total.
//
// As in the write-up, memory beyond 1 GiB goes to the driver at once, and the cache is never
// emptied, not even when memory runs out.
#pragma once

#include <unordered_map>
#include <vector>

#include "allocator.h"

constexpr size_t kAlignment = 512;

// The power of two, from kAlignment on, that holds `bytes`.
inline size_t bucket_size(size_t bytes) {
  size_t size = kAlignment;
  while (size < bytes) {
    size *= 2;
  }
  return size;
}

// Does not free its blocks: their source does.
class SizeCache {
 public:
  // Takes a cached block of exactly `size` bytes; nullptr where there is none.
  void* take(size_t size) {
    std::vector<void*>& blocks = blocks_[size];
    if (blocks.empty()) {
      return nullptr;
    }
    void* ptr = blocks.back();
    blocks.pop_back();
    bytes_ -= size;
    return ptr;
  }

  // Keeps a freed block; false where the cache is full.
  bool keep(void* ptr, size_t size) {
    if (bytes_ + size > kMaxBytes) {
      return false;
    }
    blocks_[size].push_back(ptr);
    bytes_ += size;
    return true;
  }

 private:
  static constexpr size_t kMaxBytes = size_t{1} << 30;

  std::unordered_map<size_t, std::vector<void*>> blocks_;
  size_t bytes_ = 0;
};
