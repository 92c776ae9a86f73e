// The memory of one stream in one private pool: segments split into blocks, free blocks found by
// size. One thread at a time; sizes are in B.
#pragma once

#include <exception>
#include <utility>

#include "allocation_counts.h"
#include "mapping.h"
#include "size_tries.h"
#include "stream_order.h"
#include "stream_source.h"

namespace dropin {

// The state that all heaps of a device share.
struct Memory {
  Memory(MemorySource& source, int device)
      : arena{source, device},
        streams(dynamic_cast<StreamSource*>(&source)),
        mapping(dynamic_cast<Mapping*>(&source)),
        order(dynamic_cast<StreamOrder*>(&source)) {}

  bool has_room(size_t bytes) const {
    return bytes <= arena.limit && arena.reserved() <= arena.limit - bytes;
  }

  // nullptr where the driver has no memory or the limit is reached.
  void* allocate(size_t bytes) {
    if (!has_room(bytes)) {
      return nullptr;
    }
    const bool is_in_capture = captures > 0 && streams != nullptr;
    return is_in_capture ? streams->allocate_in_capture(arena.device, bytes)
                         : arena.source.allocate(arena.device, bytes);
  }

  // Returns a segment to the driver; false where it refuses, and `refusal` is the error.
  bool release(void* segment) {
    try {
      arena.source.release(arena.device, segment);
      return true;
    } catch (const std::runtime_error&) {
      refusal = std::current_exception();
      return false;
    }
  }

  Arena arena;
  StreamSource* const streams;  // nullptr where the source has no stream identities
  Mapping* const mapping;       // nullptr where the source cannot map pages
  StreamOrder* const order;     // nullptr where streams cannot wait on the device
  HeapBlocks blocks;
  size_t captures = 0;  // in progress
  std::exception_ptr refusal;
};

struct Heap;

// The segments of a heap for small requests, or those for all larger ones.
class SegmentPool {
 public:
  SegmentPool(Memory& memory, Heap& heap, bool is_small)
      : heap(heap), is_small(is_small), memory_(memory) {}
  SegmentPool(const SegmentPool&) = delete;
  ~SegmentPool() {
    if (range_ != nullptr) {
      memory_.mapping->drop(memory_.arena.device, range_);
    }
  }

  // A block of at least `size` bytes from existing segments; nullptr where none fits.
  HeapBlock* take(size_t size) {
    HeapBlock* block = free_.find(size);
    if (block == nullptr && is_free(last_) && is_end(last_) && last_->size >= size) {
      block = last_;
    }
    return block != nullptr ? use(block, size) : nullptr;
  }

  // The same, but not from the end of a range, and not from a small segment that is entirely free.
  HeapBlock* take_from_used_segment(size_t size) {
    HeapBlock* block = free_.find(size);
    const bool is_part = block != nullptr && !(is_small && block->size == kSmallSegment);
    return is_part ? use(block, size) : nullptr;
  }

  // A block of at least `size` bytes from new memory of the driver; nullptr where there is no
  // room.
  HeapBlock* grow(size_t size) {
    const bool is_mapped = memory_.mapping != nullptr && memory_.captures == 0;
    return is_mapped ? extend(size) : add_segment(size);
  }

  // Frees a block of this pool and merges it with its free neighbours, which may delete `block`.
  void give(HeapBlock* block) {
    block->state = BlockState::kFree;
    if (HeapBlock* above = block->above(); is_free(above)) {
      remove(above);
      absorb(block, above);
    }
    if (HeapBlock* below = block->below(); is_free(below)) {
      remove(below);
      absorb(below, block);
      block = below;
    }
    insert(block);
  }

  // Returns free segments to the driver until at most `keep` bytes are reserved on the device, and
  // calls returned(bytes) for each. A segment that the driver refuses stays in the pool.
  template <typename Returned>
  void release(size_t keep, Returned returned) {
    for (size_t i = segments_.size(); i-- > 0 && memory_.arena.reserved() > keep;) {
      HeapBlock* block = segments_[i];
      if (block->ptr == range_) {
        shrink(i, returned);
      } else if (is_free(block) && block->after == nullptr && memory_.release(block->ptr)) {
        returned(block->size);
        free_.remove(block);
        forget(block);
        forget_segment(i);
      }
    }
  }

  // The first block of each segment; it stays the first as long as the segment exists.
  const std::vector<HeapBlock*>& segments() const { return segments_; }

  Heap& heap;
  const bool is_small;

 private:
  static constexpr size_t kSmallSegment = size_t{2} << 20;
  static constexpr size_t kLargeSegment = size_t{20} << 20;
  static constexpr size_t kDedicatedSegment =
      size_t{10} << 20;  // requests from this size on get a whole segment

  static bool is_free(const HeapBlock* block) {
    return block != nullptr && block->state == BlockState::kFree;
  }

  size_t segment_size(size_t size) const {
    if (is_small) {
      return kSmallSegment;
    }
    return size < kDedicatedSegment ? kLargeSegment : round_up(size, kSmallSegment);
  }

  // A block from a new segment.
  HeapBlock* add_segment(size_t size) {
    const size_t bytes = segment_size(size);
    void* ptr = memory_.allocate(bytes);
    if (ptr == nullptr) {
      return nullptr;
    }
    HeapBlock* block = memory_.blocks.make(this, static_cast<char*>(ptr), bytes);
    memory_.arena.table.insert(block);
    segments_.push_back(block);
    return cut(block, size);
  }

  // A block from the range, which grows by the bytes that its last free block lacks, and at first
  // by a segment.
  HeapBlock* extend(size_t size) {
    if (range_ == nullptr) {
      range_ = memory_.mapping->reserve(memory_.arena.device);
    }
    const size_t lacks = size - (is_free(last_) ? last_->size : 0);
    const size_t bytes = round_up(lacks, Mapping::kPage);
    const bool is_mapped = (mapped_ == 0 && map(std::max(bytes, first_bytes()))) || map(bytes);
    return is_mapped ? cut(last_, size) : nullptr;
  }

  // Maps `bytes` more; false where there is no room. Afterwards the last block is free and not in
  // the tries.
  bool map(size_t bytes) {
    if (!memory_.has_room(bytes) || !memory_.mapping->extend(memory_.arena.device, range_, bytes)) {
      return false;
    }
    if (is_free(last_)) {
      remove(last_);
      last_->size += bytes;
    } else {
      HeapBlock* end = memory_.blocks.make(this, range_ + mapped_, bytes);
      end->before = last_;
      if (last_ != nullptr) {
        last_->after = end;
      } else {
        segments_.push_back(end);
      }
      memory_.arena.table.insert(end);
      last_ = end;
    }
    mapped_ += bytes;
    return true;
  }

  // Unmaps the free end of the range, which is the segment `index`.
  template <typename Returned>
  void shrink(size_t index, Returned returned) {
    if (!is_free(last_)) {
      return;
    }
    const size_t keep = size_t(last_->ptr - range_);
    const size_t left = memory_.mapping->shrink(memory_.arena.device, range_, keep);
    if (left == mapped_) {
      return;
    }
    returned(mapped_ - left);
    HeapBlock* end = last_;
    remove(end);
    end->size -= mapped_ - left;
    mapped_ = left;
    if (end->size > 0) {
      insert(end);
      return;
    }
    last_ = end->below();
    if (last_ != nullptr) {
      last_->after = nullptr;
    } else {
      forget_segment(index);
    }
    forget(end);
  }

  void forget(HeapBlock* block) {
    memory_.arena.table.erase(block);
    memory_.blocks.drop(block);
  }

  void forget_segment(size_t index) {
    segments_[index] = segments_.back();
    segments_.pop_back();
  }

  // The free end of a range can grow to any size, so it is used last and is not filed by size. A
  // range that has never grown is like any other segment.
  bool is_end(const HeapBlock* block) const { return block == last_ && mapped_ > first_bytes(); }
  size_t first_bytes() const { return is_small ? kSmallSegment : kLargeSegment; }

  void insert(HeapBlock* block) {
    if (!is_end(block)) {
      free_.insert(block);
    }
  }

  void remove(HeapBlock* block) {
    if (!is_end(block)) {
      free_.remove(block);
    }
  }

  HeapBlock* use(HeapBlock* block, size_t size) {
    remove(block);
    return cut(block, size);
  }

  // Uses the first `size` bytes of a block; the rest becomes free unless it is too small.
  HeapBlock* cut(HeapBlock* block, size_t size) {
    block->state = BlockState::kUsed;
    const size_t rest = block->size - size;
    const bool splits_all = is_small || memory_.mapping != nullptr;
    if (splits_all ? rest >= SizeTries::kGranule : rest > kSmallRequest) {
      HeapBlock* second = memory_.blocks.make(this, block->ptr + size, rest);
      second->before = block;
      second->after = std::exchange(block->after, second);
      if (second->after != nullptr) {
        second->after->before = second;
      }
      if (block == last_) {
        last_ = second;
      }
      block->size = size;
      memory_.arena.table.insert(second);
      insert(second);
    }
    return block;
  }

  void absorb(HeapBlock* block, HeapBlock* above) {
    block->size += above->size;
    block->after = above->after;
    if (block->after != nullptr) {
      block->after->before = block;
    }
    if (above == last_) {
      last_ = block;
    }
    forget(above);
  }

  Memory& memory_;
  SizeTries free_;
  std::vector<HeapBlock*> segments_;
  char* range_ = nullptr;      // start of the mapped pages; nullptr without mapping
  HeapBlock* last_ = nullptr;  // at the end of the mapped pages
  size_t mapped_ = 0;
};

// The most recently freed small blocks, kept whole for requests of their exact size as long as they
// all have the same size; exact_front.h is the same for Block.
class Front {
 public:
  // Takes a kept block of exactly `size` bytes; nullptr where there is none.
  HeapBlock* pop(size_t size) {
    if (kept_.empty() || kept_.back()->size != size) {
      return nullptr;
    }
    HeapBlock* block = kept_.back();
    kept_.pop_back();
    block->state = BlockState::kUsed;
    return block;
  }

  // Keeps a block. Kept blocks of another size go back to their pool first; beyond kDepth, so does
  // the block.
  void push(HeapBlock* block) {
    if (!kept_.empty() && kept_.back()->size != block->size) {
      flush();
    }
    if (kept_.size() == kDepth) {
      block->segment_pool->give(block);
      return;
    }
    block->state = BlockState::kCached;
    kept_.push_back(block);
  }

  void flush() {
    for (HeapBlock* block : kept_) {
      block->segment_pool->give(block);
    }
    kept_.clear();
  }

 private:
  static constexpr size_t kDepth = 32;
  std::vector<HeapBlock*> kept_;
};

// Must not move: its blocks point to its pools.
struct Heap {
  Heap(Memory& memory, Stream stream)
      : stream(stream), small(memory, *this, true), large(memory, *this, false) {}
  Heap(const Heap&) = delete;

  SegmentPool& pool_for(size_t size) { return size <= kSmallRequest ? small : large; }
  bool is_empty() const { return small.segments().empty() && large.segments().empty(); }

  const Stream stream;
  SegmentPool small;
  SegmentPool large;
  Front front;
};

}  // namespace dropin
