// Free blocks by size in two levels of bins: a fit is found in constant time, by two bit scans.
//
// The first level is the power of two of the size, the second divides it into 32. Masmano, Ripoll,
// Crespo and Real, "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004.
#pragma once

#include <array>
#include <cstdint>

#include "blocks.h"

// Non-owning: it uses `next` and `previous` of the blocks that it holds. Sizes are multiples of
// kGranule, up to kMaxRequest (pool.h). One thread at a time.
class FreeIndex {
 public:
  static constexpr size_t kGranule = 512;

  // Adds a block that is in no list.
  void insert(Block* block) {
    const Bin bin = bin_of(block->size);
    Block*& head = heads_[bin.index()];
    block->previous = nullptr;
    block->next = head;
    if (head != nullptr) {
      head->previous = block;
    }
    head = block;
    first_ |= 1u << bin.first;
    second_[bin.first] |= 1u << bin.second;
  }

  // Removes a block, whose size must be unchanged since insert.
  void remove(Block* block) {
    if (block->next != nullptr) {
      block->next->previous = block->previous;
    }
    if (block->previous != nullptr) {
      block->previous->next = block->next;
      return;
    }
    const Bin bin = bin_of(block->size);
    heads_[bin.index()] = block->next;
    if (block->next == nullptr) {
      second_[bin.first] &= ~(1u << bin.second);
      if (second_[bin.first] == 0) {
        first_ &= ~(1u << bin.first);
      }
    }
  }

  // A block of at least `size` bytes, a multiple of kGranule, close to the best fit; nullptr only
  // where none fits.
  Block* find(size_t size) const {
    const Bin bin = bin_of(size);
    // Blocks in the bin of the request may be too small. Inspecting a few finds most that fit.
    if (Block* block = smallest(heads_[bin.index()], size, kMaxInspected)) {
      return block;
    }
    if (Block* block = from_larger_bin(bin)) {
      return block;
    }
    return smallest(heads_[bin.index()], size,
                    SIZE_MAX);  // a full search is cheaper than the driver
  }

  // Calls visit(block) for every block, the smallest bins first.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (Block* head : heads_) {
      for (Block* block = head; block != nullptr;) {
        Block* next = block->next;  // the visitor may remove the block
        visit(block);
        block = next;
      }
    }
  }

 private:
  static constexpr int kSecondBits = 5;
  static constexpr uint32_t kSecond = 1u << kSecondBits;
  static constexpr uint32_t kFirst = 32;
  static constexpr size_t kMaxInspected = 8;

  struct Bin {
    uint32_t first;
    uint32_t second;
    size_t index() const { return first * kSecond + second; }
  };

  static Bin bin_of(size_t size) {
    const uint64_t granules = size / kGranule;
    if (granules < kSecond) {
      return {0, uint32_t(granules)};  // a bin for each size
    }
    const int log = 63 - __builtin_clzll(granules);
    return {uint32_t(log - kSecondBits + 1), uint32_t(granules >> (log - kSecondBits)) % kSecond};
  }

  Block* from_larger_bin(Bin bin) const {
    uint32_t first = bin.first;
    uint32_t second = second_[first] & (bin.second + 1 < kSecond ? ~0u << (bin.second + 1) : 0);
    if (second == 0) {
      const uint32_t above = first_ & (first + 1 < kFirst ? ~0u << (first + 1) : 0);
      if (above == 0) {
        return nullptr;
      }
      first = uint32_t(__builtin_ctz(above));
      second = second_[first];
    }
    const Bin larger{first, uint32_t(__builtin_ctz(second))};
    return smallest(heads_[larger.index()], 0, kMaxInspected);
  }

  // The best fit among the first `look` blocks of a list.
  static Block* smallest(Block* block, size_t size, size_t look) {
    Block* best = nullptr;
    for (; block != nullptr && look > 0; block = block->next, --look) {
      if (block->size == size) {
        return block;
      }
      if (block->size > size && (best == nullptr || block->size < best->size)) {
        best = block;
      }
    }
    return best;
  }

  uint32_t first_ = 0;
  std::array<uint32_t, kFirst> second_{};
  std::array<Block*, size_t{kFirst} * kSecond> heads_{};
};
