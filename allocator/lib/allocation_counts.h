// Counts of allocations for allocators over an arena, and the errors that they throw.
#pragma once

#include "pool.h"

// In B and calls, like Statistics. One thread at a time, the one that changes the arena.
struct AllocationCounts {
  size_t requested = 0, active = 0, peak_active = 0;
  uint64_t allocations = 0, frees = 0, tickets = 0;

  // Counts a block that is handed out for a request of `bytes`, and gives it a new ticket.
  void* allocated(Block* block, size_t bytes) {
    block->requested = bytes;
    block->ticket = ++tickets;
    ++allocations;
    requested += bytes;
    active += block->size;
    peak_active = std::max(peak_active, active);
    return block->ptr;
  }

  // Counts a block that is freed; its size and request must be unchanged since `allocated`.
  void freed(const Block* block) {
    ++frees;
    requested -= block->requested;
    active -= block->size;
  }

  void reset() {
    peak_active = active;
    allocations = frees = 0;
  }

  Statistics statistics(const Arena& arena) const {
    const SourceCounts counts = arena.source.counts(arena.device);
    return {requested,
            active,
            peak_active,
            counts.reserved,
            counts.peak_reserved,
            counts.allocations + counts.frees,
            allocations,
            frees};
  }
};

// The used block that starts at `ptr`; throws InvalidPointer with a description of the pointer.
inline Block* used_block(const Arena& arena, const void* ptr) {
  Block* block = arena.table.find(ptr);
  if (__builtin_expect(block != nullptr && block->state == BlockState::kUsed, 1)) {
    return block;
  }
  std::string got = "one this allocator did not hand out";
  if (block != nullptr) {
    got = "one already freed";
  } else {
    const uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
    for (const BlockInfo& info : snapshot_of(arena)) {
      if (address > info.ptr && address < info.ptr + info.size) {
        got = info.state == BlockState::kUsed ? "one inside a live allocation"
                                              : "one inside free memory";
      }
    }
  }
  throw InvalidPointer("pointer: expected a live allocation of device " +
                       std::to_string(arena.device) + ", got " + got);
}

// Throws OutOfMemory for a request of `bytes`, with a snapshot of the heap.
[[noreturn]] inline void out_of_memory(const Arena& arena, const AllocationCounts& counts,
                                       size_t bytes) {
  const std::string limit = arena.limit == SIZE_MAX ? "" : ", limit " + std::to_string(arena.limit);
  throw OutOfMemory("out of memory on device " + std::to_string(arena.device) + ": asked for " +
                        std::to_string(bytes) + " B, active " + std::to_string(counts.active) +
                        " B, reserved " + std::to_string(arena.reserved()) + " B" + limit,
                    snapshot_of(arena));
}
