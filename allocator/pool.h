// Segments of one kind, cut into blocks: find, split, merge, grow, give back. One thread at a time;
// sizes are in B, and those of blocks multiples of FreeIndex::kGranule.
#pragma once

#include <algorithm>

#include "tlsf.h"

constexpr size_t kSmallRequest = size_t{1} << 20;  // up to this from the small pool
constexpr size_t kMaxRequest = size_t{1} << 44;    // beyond any device; FreeIndex has bins for it

// The size of the block that a request of `bytes` gets.
inline size_t rounded(size_t bytes) { return round_up(bytes, FreeIndex::kGranule); }

// What the pools of one device share. `limit` is the most they may reserve together. The arena owns
// what is known of the blocks; the segments themselves are the source's.
struct Arena {
  Arena(MemorySource& source, int device) : source(source), device(device) {}

  MemorySource& source;
  const int device;
  BlockStore store;
  AddressTable table;
  size_t limit = SIZE_MAX;

  size_t reserved() const { return source.counts(device).reserved; }
};

// Segments of 2 MiB for small requests, else of 20 MiB, or of their own for the largest, and the
// free blocks among them. All are memory of one stream. The arena outlives the pool.
class Pool {
 public:
  Pool(Arena& arena, bool is_small, Stream stream = 0)
      : arena_(arena), is_small_(is_small), stream_(stream) {}

  Stream stream() const { return stream_; }

  // A block of at least `size` bytes from what is there; nullptr where nothing fits.
  Block* take(size_t size) {
    Block* block = free_.find(size);
    return block != nullptr ? use(block, size) : nullptr;
  }

  // The same, but of the small segments only from those that are in use already.
  Block* take_part(size_t size) {
    Block* block = free_.find(size);
    const bool is_part = block != nullptr && !(is_small_ && block->size == kSmallSegment);
    return is_part ? use(block, size) : nullptr;
  }

  // A block of at least `size` bytes from a new segment; nullptr where the driver or the limit
  // has no room for one.
  Block* grow(size_t size) {
    const size_t bytes = segment_size(size);
    if (bytes > arena_.limit || arena_.reserved() > arena_.limit - bytes) {
      return nullptr;
    }
    void* ptr = arena_.source.allocate(arena_.device, bytes);
    if (ptr == nullptr) {
      return nullptr;
    }
    Block* block = arena_.store.make(this, static_cast<char*>(ptr), bytes);
    arena_.table.insert(block);
    return cut(block, size);
  }

  // Makes a block of this pool free and one with its free neighbours; `block` may be gone then.
  void give(Block* block) {
    block->state = BlockState::kFree;
    if (Block* after = block->after; after != nullptr && after->state == BlockState::kFree) {
      free_.remove(after);
      absorb(block, after);
    }
    if (Block* before = block->before; before != nullptr && before->state == BlockState::kFree) {
      free_.remove(before);
      absorb(before, block);
      block = before;
    }
    free_.insert(block);
  }

  // Returns free segments to the driver until at most `keep` bytes are reserved on the device.
  void release(size_t keep) {
    free_.for_each([&](Block* block) {
      const bool is_segment = block->before == nullptr && block->after == nullptr;
      if (is_segment && arena_.reserved() > keep) {
        free_.remove(block);
        arena_.table.erase(block);
        arena_.source.release(arena_.device, block->ptr);
        arena_.store.drop(block);
      }
    });
  }

 private:
  static constexpr size_t kSmallSegment = size_t{2} << 20;
  static constexpr size_t kLargeSegment = size_t{20} << 20;
  static constexpr size_t kOwnSegment = size_t{10} << 20;  // from this on a segment of its own

  size_t segment_size(size_t size) const {
    if (is_small_) {
      return kSmallSegment;
    }
    return size < kOwnSegment ? kLargeSegment : round_up(size, kSmallSegment);
  }

  Block* use(Block* block, size_t size) {
    free_.remove(block);
    return cut(block, size);
  }

  // Uses the first `size` bytes of a block; the rest is free, unless it is too little to be useful.
  Block* cut(Block* block, size_t size) {
    block->state = BlockState::kUsed;
    const size_t rest = block->size - size;
    if (is_small_ ? rest >= FreeIndex::kGranule : rest > kSmallRequest) {
      Block* second = arena_.store.make(this, block->ptr + size, rest);
      second->before = block;
      second->after = block->after;
      if (block->after != nullptr) {
        block->after->before = second;
      }
      block->after = second;
      block->size = size;
      arena_.table.insert(second);
      free_.insert(second);
    }
    return block;
  }

  void absorb(Block* block, Block* after) {
    block->size += after->size;
    block->after = after->after;
    if (after->after != nullptr) {
      after->after->before = block;
    }
    arena_.table.erase(after);
    arena_.store.drop(after);
  }

  Arena& arena_;
  const bool is_small_;
  const Stream stream_;
  FreeIndex free_;
};

// Every block of the arena by address, and the segment it lies in.
inline std::vector<BlockInfo> snapshot_of(const Arena& arena) {
  std::vector<BlockInfo> blocks;
  arena.table.for_each([&](const Block* first) {
    if (first->before != nullptr) {
      return;
    }
    const uintptr_t segment = reinterpret_cast<uintptr_t>(first->ptr);
    for (const Block* block = first; block != nullptr; block = block->after) {
      const bool is_used = block->state == BlockState::kUsed;
      blocks.push_back({segment, reinterpret_cast<uintptr_t>(block->ptr), block->size,
                        is_used ? block->requested : 0, block->state, block->pool->stream()});
    }
  });
  std::sort(blocks.begin(), blocks.end(),
            [](const BlockInfo& a, const BlockInfo& b) { return a.ptr < b.ptr; });
  return blocks;
}
