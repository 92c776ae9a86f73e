// The small blocks freed last, as long as they have one size, kept whole for requests of that size.
//
// Only one size is kept: what is held apart from its neighbours makes requests of other sizes break
// up whole segments, and a tape replayed again and again would grow once in a while.
#pragma once

#include "pool.h"

// Kept blocks count as cached: their neighbours do not merge with them. One thread at a time.
class ExactFront {
 public:
  // A kept block of exactly `size` bytes, used from now on; nullptr where there is none.
  Block* pop(size_t size) {
    Block* block = head_;
    if (block == nullptr || block->size != size) {
      return nullptr;
    }
    head_ = block->next;
    --count_;
    block->state = BlockState::kUsed;
    return block;
  }

  // Keeps a block; those kept of another size go back to their pool, and so does one too many.
  void push(Block* block) {
    if (head_ != nullptr && head_->size != block->size) {
      flush();
    }
    if (count_ == kDepth) {
      block->pool->give(block);
      return;
    }
    block->state = BlockState::kCached;
    block->next = head_;
    head_ = block;
    ++count_;
  }

  // Gives every kept block back to its pool, where it merges with its neighbours.
  void flush() {
    while (head_ != nullptr) {
      Block* block = head_;
      head_ = block->next;
      block->pool->give(block);
    }
    count_ = 0;
  }

 private:
  static constexpr uint32_t kDepth = 32;

  Block* head_ = nullptr;
  uint32_t count_ = 0;
};
