// A block as the allocators from phase 5 on keep it.
#pragma once

#include <deque>

#include "blocks.h"

namespace dropin {

class Side;

// A block of memory with what it needs in addition to be found by its size, to wait, and to go
// back where it came from; `pool` and the store of blocks.h are not used.
struct HeapBlock : Block {
  Side* side = nullptr;         // where it goes when it is free
  HeapBlock* parent = nullptr;  // in the trie of its bin, as the children
  HeapBlock* child[2] = {};
  size_t events = 0;  // that it still waits for

  HeapBlock* below() const { return static_cast<HeapBlock*>(before); }
  HeapBlock* above() const { return static_cast<HeapBlock*>(after); }
  HeapBlock* next_of_size() const { return static_cast<HeapBlock*>(next); }
};

// Blocks are made and dropped all the time; their memory is kept. One thread at a time.
class HeapBlocks {
 public:
  // A free block without neighbours, the caller's until it is dropped.
  HeapBlock* make(Side* side, char* ptr, size_t size) {
    HeapBlock* block = spare_;
    if (block != nullptr) {
      spare_ = block->next_of_size();
    } else {
      block = &blocks_.emplace_back();
    }
    block->side = side;
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
