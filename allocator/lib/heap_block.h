// The metadata of a block in the allocators from phase 5 on.
#pragma once

#include <deque>

#include "blocks.h"

namespace dropin {

class SegmentPool;

// A block with trie links, a count of pending events and the pool that it returns to. `pool` and
// the BlockStore of blocks.h are not used.
struct HeapBlock : Block {
  SegmentPool* segment_pool = nullptr;  // receives the block when it is free
  HeapBlock* parent = nullptr;          // in the trie of its bin, like the children
  HeapBlock* child[2] = {};
  size_t pending_events = 0;

  HeapBlock* below() const { return static_cast<HeapBlock*>(before); }
  HeapBlock* above() const { return static_cast<HeapBlock*>(after); }
  HeapBlock* next_of_size() const { return static_cast<HeapBlock*>(next); }
};

// Recycles the memory of blocks, which are made and dropped constantly. One thread at a time.
class HeapBlocks {
 public:
  // Makes a free block without neighbours; the caller owns it until drop.
  HeapBlock* make(SegmentPool* segment_pool, char* ptr, size_t size) {
    HeapBlock* block = spare_;
    if (block != nullptr) {
      spare_ = block->next_of_size();
    } else {
      block = &blocks_.emplace_back();
    }
    block->segment_pool = segment_pool;
    block->ptr = ptr;
    block->size = size;
    block->before = block->after = nullptr;
    block->state = BlockState::kFree;
    return block;
  }

  void drop(HeapBlock* block) {
    block->next = spare_;
    spare_ = block;
  }

 private:
  std::deque<HeapBlock> blocks_;
  HeapBlock* spare_ = nullptr;
};

}  // namespace dropin
