// The memory of one stream in one pool: segments cut into blocks, the free ones found by size. One
// thread at a time; sizes are in B.
#pragma once

#include <exception>
#include <utility>

#include "mapping.h"
#include "size_tries.h"
#include "stream_order.h"
#include "stream_source.h"
#include "tally.h"

namespace dropin {

// What the heaps of one device share.
struct Memory {
  Memory(MemorySource& source, int device)
      : arena{source, device},
        streams(dynamic_cast<StreamSource*>(&source)),
        mapping(dynamic_cast<Mapping*>(&source)),
        order(dynamic_cast<StreamOrder*>(&source)) {}

  bool has_room(size_t bytes) const {
    return bytes <= arena.limit && arena.reserved() <= arena.limit - bytes;
  }

  // nullptr where the driver or the limit has no room.
  void* allocate(size_t bytes) {
    if (!has_room(bytes)) {
      return nullptr;
    }
    const bool is_in_capture = captures > 0 && streams != nullptr;
    return is_in_capture ? streams->allocate_in_capture(arena.device, bytes)
                         : arena.source.allocate(arena.device, bytes);
  }

  // Whether the driver has taken the segment; if not, `refusal` says why.
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
  StreamSource* const streams;  // nullptr where the source knows nothing of them
  Mapping* const mapping;       // nullptr where the source maps no pages
  StreamOrder* const order;     // nullptr where streams wait for nobody
  HeapBlocks blocks;
  size_t captures = 0;  // under way
  std::exception_ptr refusal;
};

struct Heap;

// The segments for small requests, or those for all others.
class Side {
 public:
  Side(Memory& memory, Heap& heap, bool is_small)
      : heap(heap), is_small(is_small), memory_(memory) {}
  Side(const Side&) = delete;
  ~Side() {
    if (range_ != nullptr) {
      memory_.mapping->drop(memory_.arena.device, range_);
    }
  }

  // A block of at least `size` bytes from what is there; nullptr where nothing fits.
  HeapBlock* take(size_t size) {
    HeapBlock* block = free_.find(size);
    if (block == nullptr && is_free(last_) && is_end(last_) && last_->size >= size) {
      block = last_;
    }
    return block != nullptr ? use(block, size) : nullptr;
  }

  // The same, but not from the end of a range, and of the small segments only from those that are
  // in use already.
  HeapBlock* take_part(size_t size) {
    HeapBlock* block = free_.find(size);
    const bool is_part = block != nullptr && !(is_small && block->size == kSmallSegment);
    return is_part ? use(block, size) : nullptr;
  }

  // A block of at least `size` bytes, for which the driver gives memory; nullptr where there is no
  // room for it.
  HeapBlock* grow(size_t size) {
    const bool is_mapped = memory_.mapping != nullptr && memory_.captures == 0;
    return is_mapped ? extend(size) : add_segment(size);
  }

  // Makes a block of this side free and one with its free neighbours; `block` may be gone then.
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
  // calls returned(bytes) for each. What the driver refuses to take stays as it is.
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

  // The first block of each; it is the same as long as the segment is there.
  const std::vector<HeapBlock*>& segments() const { return segments_; }

  Heap& heap;
  const bool is_small;

 private:
  static constexpr size_t kSmallSegment = size_t{2} << 20;
  static constexpr size_t kLargeSegment = size_t{20} << 20;
  static constexpr size_t kOwnSegment = size_t{10} << 20;  // from this on a segment of its own

  static bool is_free(const HeapBlock* block) {
    return block != nullptr && block->state == BlockState::kFree;
  }

  size_t segment_size(size_t size) const {
    if (is_small) {
      return kSmallSegment;
    }
    return size < kOwnSegment ? kLargeSegment : round_up(size, kSmallSegment);
  }

  // From a new segment.
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

  // From the range, which grows by what the free block at its end lacks, and at first by a segment.
  HeapBlock* extend(size_t size) {
    if (range_ == nullptr) {
      range_ = memory_.mapping->reserve(memory_.arena.device);
    }
    const size_t lacks = size - (is_free(last_) ? last_->size : 0);
    const size_t bytes = round_up(lacks, Mapping::kPage);
    const bool is_mapped = (mapped_ == 0 && map(std::max(bytes, first_bytes()))) || map(bytes);
    return is_mapped ? cut(last_, size) : nullptr;
  }

  // Maps `bytes` more; false where there is no room for them. The block at the end is free then,
  // and not in the tries.
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

  // Returns what is free at the end of the range, which is the segment `index`.
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

  // What is free at the end of a range could be of any size, so it is taken where nothing else
  // fits, and is not found by the size it has. A range that has never grown is a segment as others.
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

  // Uses the first `size` bytes of a block; the rest is free, unless it is too little to be useful.
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
  char* range_ = nullptr;      // where pages are mapped, if they are
  HeapBlock* last_ = nullptr;  // at the end of what is mapped there
  size_t mapped_ = 0;
};

// The small blocks freed last, as long as they have one size, kept whole for requests of that size,
// as in exact_front.h.
class Front {
 public:
  // A kept block of exactly `size` bytes, used from now on; nullptr where there is none.
  HeapBlock* pop(size_t size) {
    if (kept_.empty() || kept_.back()->size != size) {
      return nullptr;
    }
    HeapBlock* block = kept_.back();
    kept_.pop_back();
    block->state = BlockState::kUsed;
    return block;
  }

  // Keeps a block; those kept of another size go back to their side, and so does one too many.
  void push(HeapBlock* block) {
    if (!kept_.empty() && kept_.back()->size != block->size) {
      flush();
    }
    if (kept_.size() == kDepth) {
      block->side->give(block);
      return;
    }
    block->state = BlockState::kCached;
    kept_.push_back(block);
  }

  void flush() {
    for (HeapBlock* block : kept_) {
      block->side->give(block);
    }
    kept_.clear();
  }

 private:
  static constexpr size_t kDepth = 32;
  std::vector<HeapBlock*> kept_;
};

// Stays where it is: its blocks point to its sides.
struct Heap {
  Heap(Memory& memory, Stream stream)
      : stream(stream), small(memory, *this, true), large(memory, *this, false) {}
  Heap(const Heap&) = delete;

  Side& side_for(size_t size) { return size <= kSmallRequest ? small : large; }
  bool is_empty() const { return small.segments().empty() && large.segments().empty(); }

  const Stream stream;
  Side small;
  Side large;
  Front front;
};

}  // namespace dropin
