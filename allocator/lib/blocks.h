// The metadata of blocks of device memory, kept in host memory. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator.h"

class Pool;

// A piece of a segment. It carries all list links, so lists allocate nothing: the neighbours by
// address (`before`, `after`), and the list of free or cached blocks that it is in (`next`,
// `previous`). BlockStore owns it; `pool` receives it when it is freed. Sizes are in B.
struct alignas(64) Block {
  char* ptr = nullptr;
  size_t size = 0;
  size_t requested = 0;  // bytes of the request, while it is used
  uint64_t ticket = 0;   // of the current or last allocation
  Block* before = nullptr;
  Block* after = nullptr;
  Block* next = nullptr;
  Block* previous = nullptr;
  Pool* pool = nullptr;
  BlockState state = BlockState::kFree;
  std::vector<Stream> users;  // recorded streams, without the owning one
};

// Recycles the memory of blocks, which are made and dropped constantly. The first chunk is
// allocated at construction, so that no request waits for new host pages.
class BlockStore {
 public:
  BlockStore() { refill(); }

  // Makes a free block without neighbours; the caller owns it until drop.
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

// Blocks by start address: open addressing, linear probing, no tombstones. The
// table does not delete blocks. A block is inserted once and erased at most once.
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
    // Move back the entries that were displaced past the hole.
    for (size_t i = (hole + 1) & mask(); slots_[i].ptr != nullptr; i = (i + 1) & mask()) {
      const size_t from_home = (i - home(slots_[i].ptr)) & mask();
      if (from_home >= ((i - hole) & mask())) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole] = {};
  }

  // Calls visit(block) for every block, in no particular order; it must not change the table.
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
