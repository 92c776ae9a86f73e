// What an allocator knows of a block of device memory, kept in host memory. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator.h"

class Pool;

// A piece of a segment. Links of three kinds run through it, so that no list needs memory of its
// own: neighbours by address (`before`, `after`), and the list it is in, of free or of cached
// blocks (`next`, `previous`). The store owns it; `pool` is where it goes when it is free. Sizes
// are in B.
struct alignas(64) Block {
  char* ptr = nullptr;
  size_t size = 0;
  size_t requested = 0;  // bytes asked for, while it is used
  uint64_t ticket = 0;   // of the allocation it is or last was
  Block* before = nullptr;
  Block* after = nullptr;
  Block* next = nullptr;
  Block* previous = nullptr;
  Pool* pool = nullptr;
  BlockState state = BlockState::kFree;
  std::vector<Stream> users;  // streams other than its own that were recorded
};

// Blocks are made and dropped all the time; their memory is kept. The first of it is there from the
// start, so that no request has to wait for fresh pages of the host.
class BlockStore {
 public:
  BlockStore() { refill(); }

  // A free block without neighbours, the caller's until it is dropped.
  Block* make(Pool* pool, char* ptr, size_t size) {
    if (spare_ == nullptr) {
      refill();
    }
    Block* block = spare_;
    spare_ = block->next;
    block->ptr = ptr;
    block->size = size;
    block->pool = pool;
    block->before = block->after = block->next = block->previous = nullptr;
    block->state = BlockState::kFree;
    return block;
  }

  void drop(Block* block) {
    block->next = spare_;
    spare_ = block;
  }

 private:
  static constexpr size_t kChunk = 256;

  void refill() {
    chunks_.push_back(std::make_unique<Block[]>(kChunk));
    for (size_t i = 0; i < kChunk; ++i) {
      drop(&chunks_.back()[i]);
    }
  }

  std::vector<std::unique_ptr<Block[]>> chunks_;
  Block* spare_ = nullptr;
};

// The block that starts at an address: open addressing, linear probing, no tombstones. It owns none
// of them. A block is inserted once, and erased only while it is in.
class AddressTable {
 public:
  AddressTable() : slots_(size_t{1} << kFirstBits) {}

  // nullptr where no block starts at `ptr`.
  Block* find(const void* ptr) const {
    for (size_t i = home(ptr);; i = (i + 1) & mask()) {
      if (slots_[i].ptr == ptr) {
        return slots_[i].block;
      }
      if (slots_[i].ptr == nullptr) {
        return nullptr;
      }
    }
  }

  void insert(Block* block) {
    if (2 * ++count_ > slots_.size()) {
      grow();
    }
    place(block);
  }

  void erase(const Block* block) {
    --count_;
    size_t hole = home(block->ptr);
    while (slots_[hole].ptr != block->ptr) {
      hole = (hole + 1) & mask();
    }
    // Whoever was pushed past the hole moves back into it.
    for (size_t i = (hole + 1) & mask(); slots_[i].ptr != nullptr; i = (i + 1) & mask()) {
      const size_t from_home = (i - home(slots_[i].ptr)) & mask();
      if (from_home >= ((i - hole) & mask())) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole] = {};
  }

  // Calls visit(block) for every block, in no order; it must not change the table.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.ptr != nullptr) {
        visit(slot.block);
      }
    }
  }

 private:
  struct Slot {
    const void* ptr = nullptr;
    Block* block = nullptr;
  };
  static constexpr int kFirstBits = 10;

  size_t mask() const { return slots_.size() - 1; }

  // Fibonacci hashing of the 512-byte granule: the high bits of the product are well mixed.
  size_t home(const void* ptr) const {
    const uint64_t granule = reinterpret_cast<uintptr_t>(ptr) >> 9;
    return size_t((granule * 0x9E3779B97F4A7C15u) >> (64 - bits_));
  }

  void place(Block* block) {
    size_t i = home(block->ptr);
    while (slots_[i].ptr != nullptr) {
      i = (i + 1) & mask();
    }
    slots_[i] = {block->ptr, block};
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    ++bits_;
    for (const Slot& slot : old) {
      if (slot.ptr != nullptr) {
        place(slot.block);
      }
    }
  }

  std::vector<Slot> slots_;
  int bits_ = kFirstBits;
  size_t count_ = 0;
};
