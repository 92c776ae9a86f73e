// Segments of one kind, split into blocks: find, split, merge, grow, release. One thread at a time;
// sizes are in B, and block sizes are multiples of FreeIndex::kGranule.
#pragma once

#include <algorithm>

#include "tlsf.h"

constexpr size_t kSmallRequest = size_t{1} << 20;  // served by the small pool up to this size
constexpr size_t kMaxRequest = size_t{1}
                               << 44;  // larger than any device; FreeIndex has bins for it

// The block size for a request of `bytes`.
inline size_t rounded(size_t bytes) { return round_up(bytes, FreeIndex::kGranule); }

// The state that all pools of a device share. `limit` bounds the bytes that they reserve together.
// The arena owns the metadata of blocks; the source owns the segments.
struct Arena {
  Arena(MemorySource& source, int device) : source(source), device(device) {}

  MemorySource& source;
  const int device;
  BlockStore store;
  AddressTable table;
  size_t limit = SIZE_MAX;

  size_t reserved() const { return source.counts(device).reserved; }
};

// Segments of 2 MiB for small requests, of 20 MiB for larger ones, and a dedicated segment for each
// of the largest; with their free blocks. All belong to one stream. The arena outlives the pool.
class Pool {
 public:
  Pool(Arena& arena, bool is_small, Stream stream = 0)
      : arena_(arena), is_small_(is_small), stream_(stream) {}

  Stream stream() const { return stream_; }

  // A block of at least `size` bytes from existing segments; nullptr where none fits.
  Block* take(size_t size) {
    Block* block = free_.find(size);
    return block != nullptr ? use(block, size) : nullptr;
  }

  // The same, but not from a small segment that is entirely free.
  Block* take_from_used_segment(size_t size) {
    Block* block = free_.find(size);
    const bool is_part = block != nullptr && !(is_small_ && block->size == kSmallSegment);
    return is_part ? use(block, size) : nullptr;
  }

  // A block of at least `size` bytes from a new segment; nullptr where the driver has no memory or
  // the limit is reached.
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

  // Frees a block of this pool and merges it with its free neighbours, which may delete `block`.
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
  static constexpr size_t kDedicatedSegment =
      size_t{10} << 20;  // requests from this size on get a whole segment

  size_t segment_size(size_t size) const {
    if (is_small_) {
      return kSmallSegment;
    }
    return size < kDedicatedSegment ? kLargeSegment : round_up(size, kSmallSegment);
  }

  Block* use(Block* block, size_t size) {
    free_.remove(block);
    return cut(block, size);
  }

  // Uses the first `size` bytes of a block; the rest becomes free unless it is too small.
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

// All blocks of the arena with their segments, sorted by address.
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
