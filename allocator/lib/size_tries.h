// Free blocks by size: finds the best fit in as many steps as a size has bits, for any number of
// blocks.
//
// Bins like those of tlsf.h group similar sizes. Each bin is a binary trie over the remaining bits
// of the size; blocks of one size share a node. The large bins of Doug Lea's malloc 2.8 are the
// same.
#pragma once

#include <array>
#include <cstdint>

#include "heap_block.h"

namespace dropin {

// Non-owning: it uses the trie links, `next` and `previous` of the blocks that it holds.
// Sizes are multiples of kGranule, up to kMaxRequest (pool.h). One thread at a time.
class SizeTries {
 public:
  static constexpr size_t kGranule = 512;

  // Adds a block.
  void insert(HeapBlock* block) {
    Bin bin = bin_of(block->size);
    HeapBlock* parent = nullptr;
    HeapBlock** link = &roots_[bin.index()];
    while (*link != nullptr && (*link)->size != block->size) {
      parent = *link;
      link = &parent->child[bin.next_bit()];
    }
    block->child[0] = block->child[1] = nullptr;
    if (HeapBlock* node = *link; node != nullptr) {
      // Behind the node, so that the newest block can be removed without changing the trie.
      block->previous = node;
      block->next = node->next;
      if (node->next != nullptr) {
        node->next->previous = block;
      }
      node->next = block;
      return;
    }
    *link = block;
    block->parent = parent;
    block->next = block->previous = nullptr;
    first_ |= uint64_t{1} << bin.first;
    second_[bin.first] |= 1u << bin.second;
  }

  // Removes a block, whose size must be unchanged since insert.
  void remove(HeapBlock* block) {
    if (block->previous != nullptr) {
      block->previous->next = block->next;
      if (block->next != nullptr) {
        block->next->previous = block->previous;
      }
      return;
    }
    HeapBlock* heir = block->next_of_size();
    if (heir != nullptr) {
      heir->previous = nullptr;
    } else {
      heir = take_leaf(block);
    }
    if (heir != nullptr) {
      heir->parent = block->parent;
      for (size_t side = 0; side < 2; ++side) {
        heir->child[side] = block->child[side];
        if (heir->child[side] != nullptr) {
          heir->child[side]->parent = heir;
        }
      }
    }
    if (HeapBlock* parent = block->parent; parent != nullptr) {
      parent->child[parent->child[1] == block] = heir;
    } else {
      set_root(bin_of(block->size), heir);
    }
  }

  // The smallest block of at least `size` bytes, a multiple of kGranule, and among equal sizes a
  // recent one; nullptr where none fits.
  HeapBlock* find(size_t size) const {
    const Bin bin = bin_of(size);
    HeapBlock* best = fit_in(bin, size);
    if (best == nullptr) {
      best = least(root_of_larger_bin(bin));
    }
    return best != nullptr && best->next != nullptr ? best->next_of_size() : best;
  }

 private:
  static constexpr int kSecondBits = 4;
  static constexpr uint32_t kSecond = 1u << kSecondBits;
  static constexpr uint32_t kFirst = 33;

  // The bin of a size, and the bits of the size below it, the highest first.
  struct Bin {
    uint32_t first;
    uint32_t second;
    uint64_t open = 0;

    size_t index() const { return first * kSecond + second; }
    size_t next_bit() {
      const size_t bit = size_t(open >> 63);
      open <<= 1;
      return bit;
    }
  };

  static Bin bin_of(size_t size) {
    const uint64_t granules = size / kGranule;
    if (granules < 2 * kSecond) {
      return {uint32_t(granules / kSecond), uint32_t(granules % kSecond)};  // a bin for each size
    }
    const int log = 63 - __builtin_clzll(granules);
    const int width = log - kSecondBits;
    return {uint32_t(width + 1), uint32_t(granules >> width) % kSecond, granules << (64 - width)};
  }

  // The best fit in a bin.
  HeapBlock* fit_in(Bin bin, size_t size) const {
    HeapBlock* best = nullptr;
    HeapBlock* larger = nullptr;  // the nearest branch in which all blocks are larger
    for (HeapBlock* node = roots_[bin.index()]; node != nullptr;) {
      if (node->size >= size && (best == nullptr || node->size < best->size)) {
        best = node;
      }
      if (node->size == size) {
        return node;
      }
      const size_t bit = bin.next_bit();
      if (bit == 0 && node->child[1] != nullptr) {
        larger = node->child[1];
      }
      node = node->child[bit];
    }
    HeapBlock* other = least(larger);
    return best == nullptr || (other != nullptr && other->size < best->size) ? other : best;
  }

  // The smallest block of a trie.
  static HeapBlock* least(HeapBlock* root) {
    HeapBlock* best = root;
    for (HeapBlock* node = root; node != nullptr;
         node = node->child[0] != nullptr ? node->child[0] : node->child[1]) {
      best = node->size < best->size ? node : best;
    }
    return best;
  }

  // Detaches any leaf below a node; nullptr where the node is a leaf.
  static HeapBlock* take_leaf(HeapBlock* node) {
    HeapBlock* leaf = node;
    while (leaf->child[0] != nullptr || leaf->child[1] != nullptr) {
      leaf = leaf->child[leaf->child[0] == nullptr];
    }
    if (leaf == node) {
      return nullptr;
    }
    leaf->parent->child[leaf->parent->child[1] == leaf] = nullptr;
    return leaf;
  }

  void set_root(Bin bin, HeapBlock* root) {
    roots_[bin.index()] = root;
    if (root == nullptr) {
      second_[bin.first] &= ~(1u << bin.second);
      if (second_[bin.first] == 0) {
        first_ &= ~(uint64_t{1} << bin.first);
      }
    }
  }

  HeapBlock* root_of_larger_bin(Bin bin) const {
    uint32_t first = bin.first;
    uint32_t second = second_[first] & (~0u << (bin.second + 1));
    if (second == 0) {
      const uint64_t above = first_ & (~uint64_t{0} << (first + 1));
      if (above == 0) {
        return nullptr;
      }
      first = uint32_t(__builtin_ctzll(above));
      second = second_[first];
    }
    return roots_[Bin{first, uint32_t(__builtin_ctz(second))}.index()];
  }

  uint64_t first_ = 0;
  std::array<uint32_t, kFirst> second_{};
  std::array<HeapBlock*, size_t{kFirst} * kSecond> roots_{};
};

}  // namespace dropin
