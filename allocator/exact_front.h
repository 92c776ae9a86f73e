// The small block freed last, kept whole for a request of its exact size.
//
// Only one is kept: whatever is held apart from its neighbours makes requests of other sizes break
// up new segments, so that more of them would keep a replayed tape growing.
#pragma once

#include "pool.h"

class ExactFront {
 public:
  // The kept block if it has exactly `size` bytes, or nullptr.
  Block* pop(size_t size) {
    Block* block = kept_;
    if (block == nullptr || block->size != size) {
      return nullptr;
    }
    kept_ = nullptr;
    block->state = BlockState::kUsed;
    return block;
  }

  // Keeps a block; the one kept before goes back to its pool.
  void push(Block* block) {
    flush();
    block->state = BlockState::kCached;
    kept_ = block;
  }

  // Gives the kept block back to its pool, where it merges with its neighbours.
  void flush() {
    if (kept_ != nullptr) {
      kept_->pool->give(kept_);
      kept_ = nullptr;
    }
  }

 private:
  Block* kept_ = nullptr;
};
