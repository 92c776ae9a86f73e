// The step of one request by one thread block, but for the bytes of missing rows. As in published
// kernels: a hash table of the step's ids in shared memory, a scan of the whole hot set in the
// order of use, and an exact order of use that each step writes anew.
#pragma once

#include "../common/check.h"
#include "../common/memory.h"
#include "operator.h"

constexpr int kResolveThreads = 1024;

// Scratch memory of a layer that outlives steps: the slots of each request in the order of use,
// oldest first, [requests, slots].
struct UseOrder {
  uint16_t* slots;
};

// Misses of one request's step: row of the context and slot of each.
struct Miss {
  int32_t id;
  int32_t slot;
};

constexpr int kHashSize = 2 * kMaxTopk;
constexpr int kNoSlot = -1;

// Shared memory of a block that resolves.
struct Resolving {
  int32_t keys[kHashSize];   // ids, or kFree
  int32_t slots[kHashSize];  // slot of each, or kNoSlot
  Miss misses[kMaxTopk];
  uint16_t evictable[kMaxSlots];  // slots of rows that the step does not use, oldest first
  uint32_t used_rows[kMaxContextRows / 32];  // bit per row of the context
  int warp_counts[2][kWarp];
  int miss_count;
};

// Orders of use of all layers, in any order of free slots.
inline std::shared_ptr<uint16_t[]> new_use_orders(const std::vector<HotSet>& layers) {
  const HotSet& set = layers.front();
  std::vector<uint16_t> order(layers.size() * static_cast<size_t>(set.requests) *
                              static_cast<size_t>(set.slots));
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<uint16_t>(i % static_cast<size_t>(set.slots));
  }
  auto made = on_device<uint16_t>(order.size());
  check(
      cudaMemcpy(made.get(), order.data(), order.size() * sizeof(uint16_t), cudaMemcpyHostToDevice),
      "order of use");
  return made;
}

inline UseOrder use_order_of(const std::shared_ptr<uint16_t[]>& orders, const HotSet& set,
                             int layer) {
  return {orders.get() + static_cast<int64_t>(layer) * set.requests * set.slots};
}

// Lets blocks of `kernel` have a Resolving in shared memory.
template <class Kernel>
void allow_shared_memory(Kernel* kernel) {
  check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Resolving)),
      "shared memory");
}

#ifdef __CUDACC__
__device__ inline uint32_t hash_of(int32_t id) {
  return static_cast<uint32_t>(id) * 2654435761U >> 20 & (kHashSize - 1);
}

// Inserts `id` into the hash table, which is at most half full.
__device__ inline void insert(Resolving& shared, int32_t id) {
  for (uint32_t at = hash_of(id);; at = (at + 1) % kHashSize) {
    const int32_t found = atomicCAS(&shared.keys[at], kFree, id);
    if (found == kFree || found == id) {
      return;
    }
  }
}

// Place of `id` in the hash table, or -1.
__device__ inline int find(const Resolving& shared, int32_t id) {
  for (uint32_t at = hash_of(id);; at = (at + 1) % kHashSize) {
    const int32_t found = shared.keys[at];
    if (found == id) {
      return static_cast<int>(at);
    }
    if (found == kFree) {
      return -1;
    }
  }
}

// Number of threads before this one in the block for which `counts` holds; `total` is that of the
// block. Calls alternate between two `warp_counts`.
__device__ inline int rank_in_block(bool counts, int (&warp_counts)[kWarp], int& total) {
  const unsigned votes = __ballot_sync(~0U, counts);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = lane_index();
  if (lane == 0) {
    warp_counts[warp] = __popc(votes);
  }
  __syncthreads();
  const int count = lane < static_cast<int>(blockDim.x) / kWarp ? warp_counts[lane] : 0;
  total = __reduce_add_sync(~0U, count);
  return __reduce_add_sync(~0U, lane < warp ? count : 0) + __popc(votes & ((1U << lane) - 1));
}

// Numbers of slots in `evictable` and of misses.
struct LookedUp {
  int evictable;
  int misses;
};

// Finds hits and misses. On return, the hash table has the slots of hits, `evictable` those of rows
// that the step does not use, and `misses` the ids that are in no slot.
__device__ inline LookedUp look_up(const HotSet& set, const UseOrder& order, int request,
                                   Resolving& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int32_t* ids = set.ids + static_cast<int64_t>(request) * set.topk;
  const int32_t* rows = set.rows + static_cast<int64_t>(request) * set.slots;
  const uint16_t* oldest_first = order.slots + static_cast<int64_t>(request) * set.slots;
  // The state does not depend on the ids, so all its loads are in flight at first.
  int slots[kMaxSlots / kResolveThreads];
  int32_t rows_of[kMaxSlots / kResolveThreads];
#pragma unroll
  for (int j = 0; j < kMaxSlots / kResolveThreads; ++j) {
    const int i = j * kResolveThreads + thread;
    slots[j] = i < set.slots ? oldest_first[i] : kNoSlot;
  }
#pragma unroll
  for (int j = 0; j < kMaxSlots / kResolveThreads; ++j) {
    rows_of[j] = slots[j] == kNoSlot ? kFree : rows[slots[j]];
  }
  for (int i = thread; i < kHashSize; i += kResolveThreads) {
    shared.keys[i] = kFree;
    shared.slots[i] = kNoSlot;
  }
  if (thread == 0) {
    shared.miss_count = 0;
  }
  __syncthreads();
  for (int i = thread; i < set.topk; i += kResolveThreads) {
    insert(shared, ids[i]);
  }
  __syncthreads();
  int evictable = 0;
#pragma unroll
  for (int j = 0; j < kMaxSlots / kResolveThreads; ++j) {
    if (j * kResolveThreads >= set.slots) {
      break;
    }
    const int at = rows_of[j] == kFree ? -1 : find(shared, rows_of[j]);
    const bool is_idle = slots[j] != kNoSlot && at < 0;
    if (at >= 0) {
      shared.slots[at] = slots[j];
    }
    int idle = 0;
    const int rank = rank_in_block(is_idle, shared.warp_counts[j % 2], idle);
    if (is_idle) {
      shared.evictable[evictable + rank] = static_cast<uint16_t>(slots[j]);
    }
    evictable += idle;
  }
  __syncthreads();
  for (int i = thread; i < kHashSize; i += kResolveThreads) {
    if (shared.keys[i] != kFree && shared.slots[i] == kNoSlot) {
      shared.misses[atomicAdd(&shared.miss_count, 1)].id = shared.keys[i];
    }
  }
  __syncthreads();
  return {evictable, shared.miss_count};
}

// Gives each miss the slot of one of the oldest rows.
__device__ inline void assign_slots(const LookedUp& found, Resolving& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < found.misses; i += kResolveThreads) {
    Miss& miss = shared.misses[i];
    miss.slot = shared.evictable[i];
    shared.slots[find(shared, miss.id)] = miss.slot;
  }
  __syncthreads();
}

// Writes the slot of each id, and the state for the next step.
__device__ inline void update(const HotSet& set, const UseOrder& order, int request,
                              const LookedUp& found, Resolving& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int32_t* ids = set.ids + static_cast<int64_t>(request) * set.topk;
  int32_t* rows = set.rows + static_cast<int64_t>(request) * set.slots;
  int32_t* last_used = set.last_used + static_cast<int64_t>(request) * set.slots;
  int32_t* out = set.out + static_cast<int64_t>(request) * set.topk;
  uint16_t* oldest_first = order.slots + static_cast<int64_t>(request) * set.slots;
  const int32_t step = *set.step;
  for (int i = thread; i < kMaxContextRows / 32; i += kResolveThreads) {
    shared.used_rows[i] = 0;
  }
  for (int i = thread; i < found.misses; i += kResolveThreads) {
    rows[shared.misses[i].slot] = shared.misses[i].id;
  }
  __syncthreads();
  for (int i = thread; i < set.topk; i += kResolveThreads) {
    const int32_t id = ids[i];
    const int slot = shared.slots[find(shared, id)];
    out[i] = slot;
    last_used[slot] = step;
    atomicOr(&shared.used_rows[id / 32], 1U << id % 32);
  }
  for (int i = found.misses + thread; i < found.evictable; i += kResolveThreads) {
    oldest_first[i - found.misses] = shared.evictable[i];
  }
  __syncthreads();
  // The rows of this step follow in the order of their ids: the rank of a bit is its place.
  constexpr int kWords = kMaxContextRows / 32 / kResolveThreads;
  const uint32_t* words = shared.used_rows + thread * kWords;
  int bits = 0;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    bits += __popc(words[i]);
  }
  int before = bits;
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const int other = __shfl_up_sync(~0U, before, delta);
    before += lane_index() >= delta ? other : 0;
  }
  int* warp_counts = shared.warp_counts[0];
  if (lane_index() == kWarp - 1) {
    warp_counts[thread / kWarp] = before;
  }
  __syncthreads();
  const int lower = lane_index() < thread / kWarp ? warp_counts[lane_index()] : 0;
  int at = found.evictable - found.misses + __reduce_add_sync(~0U, lower) + before - bits;
  for (int i = 0; i < kWords; ++i) {
    for (uint32_t word = words[i]; word != 0; word &= word - 1) {
      const int32_t id = (thread * kWords + i) * 32 + __ffs(static_cast<int>(word)) - 1;
      oldest_first[at++] = static_cast<uint16_t>(shared.slots[find(shared, id)]);
    }
  }
}
#endif
