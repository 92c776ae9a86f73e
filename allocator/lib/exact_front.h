// The most recently freed small blocks, kept whole for requests of their exact size as long as they
// all have the same size.
//
// Only one size is kept: blocks that are not merged make other requests split whole segments, and a
// tape that is replayed many times would need more memory now and then.
#pragma once

#include "pool.h"

// Kept blocks are in state kCached, so their neighbours do not merge with them. One thread at a
// time.
class ExactFront {
 public:
  // Takes a kept block of exactly `size` bytes; nullptr where there is none.
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

  // Keeps a block. Kept blocks of another size go back to their pool first; beyond kDepth, so does
  // the block.
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

  // Returns every kept block to its pool, where it merges with its neighbours.
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
