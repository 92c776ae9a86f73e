// Small blocks just freed, kept whole by their exact size for the next request of that size.
//
// A slot belongs to the size last asked for, so that only sizes that come back are kept: blocks of
// sizes seen once would only stay apart from their neighbours.
#pragma once

#include <array>

#include "pool.h"

class ExactFront {
 public:
  // A kept block of exactly `size` bytes, or nullptr.
  Block* pop(size_t size) {
    Slot& slot = at(size);
    if (slot.size != size) {
      flush(slot);
      slot.size = size;
    }
    Block* block = slot.head;
    if (block != nullptr) {
      slot.head = block->next;
      --slot.count;
      block->state = BlockState::kUsed;
    }
    return block;
  }

  // Keeps a block if the slot is its size's and has room; else it goes back to its pool.
  void push(Block* block) {
    Slot& slot = at(block->size);
    if (slot.size != block->size || slot.count == kDepth) {
      block->pool->give(block);
      return;
    }
    block->state = BlockState::kCached;
    block->next = slot.head;
    slot.head = block;
    ++slot.count;
  }

  // Gives every kept block back to its pool, where it merges with its neighbours.
  void flush() {
    for (Slot& slot : slots_) {
      flush(slot);
    }
  }

 private:
  struct Slot {
    size_t size = 0;
    Block* head = nullptr;
    uint32_t count = 0;
  };
  static constexpr size_t kSlots = 64;
  static constexpr uint32_t kDepth = 32;

  // Sizes that are in use together are often round; the shifts spread those, too.
  Slot& at(size_t size) {
    const size_t granules = size / FreeIndex::kGranule;
    return slots_[(granules ^ (granules >> 6)) % kSlots];
  }

  static void flush(Slot& slot) {
    while (slot.head != nullptr) {
      Block* block = slot.head;
      slot.head = block->next;
      block->pool->give(block);
    }
    slot.count = 0;
  }

  std::array<Slot, kSlots> slots_{};
};
