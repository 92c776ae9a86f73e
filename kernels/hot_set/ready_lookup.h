// A look-up that a block prepares before it knows the ids: a hash table of the rows in the hot set,
// and the idle slots in the order in which they will be evicted.
#pragma once

#include "../common/check.h"
#include "../common/memory.h"
#include "operator.h"

constexpr int kThreads = 1024;
constexpr int kMaxBlocks = 8;  // of a cluster
constexpr int kTableSize = 16384;
constexpr int kMaxIdsPerThread = kMaxTopk / kThreads;
constexpr int kMaxSlotsPerThread = kMaxSlots / kThreads;
constexpr int kRowWordsPerThread = kMaxContextRows / 32 / kThreads;
constexpr uint16_t kNoSlot = 0x8000;  // flag of a missing row, whose number follows it
static_assert(kMaxSlotsPerThread == 8, "a thread reads its idle slots as one uint4");
static_assert(kMaxSlots + kMaxTopk < kTableSize, "the table needs a free entry");

// State that the latest step has left. A slot is idle if it was last used before `listed`.
struct Marks {
  int32_t latest;  // number of the latest step
  int32_t listed;
  int32_t idle_count;
};

// Scratch memory of a layer that outlives steps.
struct Order {
  uint16_t* idle;  // [requests, slots]: the idle slots of each request, oldest first
  Marks* marks;    // [requests]
};

// The same of all layers.
struct Orders {
  std::shared_ptr<uint16_t[]> idle;
  std::shared_ptr<Marks[]> marks;

  Order of_layer(const HotSet& set, int layer) const {
    const int64_t first = static_cast<int64_t>(layer) * set.requests;
    return {idle.get() + first * set.slots, marks.get() + first};
  }
};

template <class T>
std::shared_ptr<T[]> copied_to_device(const std::vector<T>& values) {
  auto made = on_device<T>(values.size());
  check(cudaMemcpy(made.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "scratch in device memory");
  return made;
}

// Orders of layers whose slots are all free.
inline Orders new_orders(const std::vector<HotSet>& layers) {
  const HotSet& set = layers.front();
  const size_t requests = layers.size() * static_cast<size_t>(set.requests);
  std::vector<uint16_t> idle(requests * static_cast<size_t>(set.slots));
  for (size_t i = 0; i < idle.size(); ++i) {
    idle[i] = static_cast<uint16_t>(i % static_cast<size_t>(set.slots));
  }
  return {copied_to_device(idle),
          copied_to_device(std::vector<Marks>(requests, {0, 0, set.slots}))};
}

#ifdef __CUDACC__
struct MissingRow {
  int32_t id;
  int32_t place;  // row of the pool
};

struct Shared {
  int32_t keys[kTableSize];    // rows in the hot set and of the step, or kFree
  uint16_t slots[kTableSize];  // slot of each, or kNoSlot and more
  alignas(16) uint16_t idle[kMaxSlots];
  uint32_t current[kMaxSlots / 32];     // a bit per slot that the latest step used
  uint32_t used[kMaxSlots / 32];        // a bit per idle slot that this step uses
  uint32_t rows[kMaxContextRows / 32];  // bits of rows that are put in order
  MissingRow missing[kMaxTopk];         // of this block
  uint16_t victims[kMaxTopk];           // of this block, unless they are the first idle slots
  int missing_of[kMaxBlocks];           // number of missing rows of each block
  bool uses_idle;                       // the step uses a slot that was idle
  int warp_sums[2][kWarp];
};

// A request in one layer, as a thread sees it.
struct Request {
  const HotSet& set;
  int number;
  int rank;    // of the block in its cluster
  int blocks;  // of the cluster
  const int32_t* ids;
  int32_t* out;
  int32_t* rows;
  int32_t* last_used;
  uint16_t* idle;
  Marks* marks;
};

__device__ inline Request request_of(const HotSet& set, const Order& order) {
  const int blocks = static_cast<int>(__clusterSizeInBlocks());
  const int number = static_cast<int>(blockIdx.x) / blocks;
  const int64_t slots = static_cast<int64_t>(number) * set.slots;
  const int64_t ids = static_cast<int64_t>(number) * set.topk;
  return {set,
          number,
          static_cast<int>(__clusterRelativeBlockRank()),
          blocks,
          set.ids + ids,
          set.out + ids,
          set.rows + slots,
          set.last_used + slots,
          order.idle + slots,
          order.marks + number};
}

// The block of a cluster that fetches a row and writes its state.
__device__ inline int block_of(const Request& of, int32_t id) { return id & (of.blocks - 1); }

__device__ inline bool bit_of(const uint32_t* words, int bit) {
  return (words[bit / 32] >> bit % 32 & 1U) != 0;
}

__device__ inline void set_bit(uint32_t* words, int bit) {
  atomicOr(&words[bit / 32], 1U << bit % 32);
}

// Entry of a row in the table, which is inserted unless it is there.
__device__ inline int entry_of(int32_t id, bool& inserted, Shared& shared) {
  for (uint32_t at = static_cast<uint32_t>(id) * 2654435761U >> 18;; ++at) {
    const int32_t found = atomicCAS(&shared.keys[at % kTableSize], kFree, id);
    if (found == kFree || found == id) {
      inserted = found == kFree;
      return static_cast<int>(at % kTableSize);
    }
  }
}

// Slot of a row that is in the hot set.
__device__ inline uint16_t slot_of(int32_t id, const Shared& shared) {
  uint32_t at = static_cast<uint32_t>(id) * 2654435761U >> 18;
  while (shared.keys[at % kTableSize] != id) {
    ++at;
  }
  return shared.slots[at % kTableSize];
}

// The sum of `count` over all threads of the block before this one, and over all. Calls alternate
// between two `warp_sums`.
__device__ inline int sum_before(int count, int (&warp_sums)[kWarp], int& total) {
  const int lane = lane_index();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  int sum = count;
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const int other = __shfl_up_sync(~0U, sum, delta);
    sum += lane >= delta ? other : 0;
  }
  if (lane == kWarp - 1) {
    warp_sums[warp] = sum;
  }
  __syncthreads();
  const int of_warp = warp_sums[lane];
  total = __reduce_add_sync(~0U, of_warp);
  return __reduce_add_sync(~0U, lane < warp ? of_warp : 0) + sum - count;
}

// Idle slots of a thread: eight from `first` on in a list, a bit per slot that counts.
struct EightSlots {
  alignas(16) uint16_t slots[8];
  uint32_t counted;
};

__device__ inline EightSlots eight_slots(const uint4& slots, int count, const uint32_t* uncounted) {
  EightSlots eight{};
  *reinterpret_cast<uint4*>(eight.slots) = slots;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool counts = i < count && !bit_of(uncounted, eight.slots[i]);
    eight.counted |= static_cast<uint32_t>(counts) << i;
  }
  return eight;
}

// Number of this thread's bits among those of rows that are put in order.
__device__ inline int count_rows(const Shared& shared) {
  int count = 0;
#pragma unroll
  for (int i = 0; i < kRowWordsPerThread; ++i) {
    count += __popc(shared.rows[threadIdx.x * kRowWordsPerThread + i]);
  }
  return count;
}

// Calls `visit(number, slot)` for each of these rows, in their order; the first one has `number`.
template <class Visit>
__device__ inline void visit_rows(int number, const Shared& shared, const Visit& visit) {
#pragma unroll
  for (int i = 0; i < kRowWordsPerThread; ++i) {
    const int word = static_cast<int>(threadIdx.x) * kRowWordsPerThread + i;
    for (uint32_t bits = shared.rows[word]; bits != 0; bits &= bits - 1, ++number) {
      visit(number, slot_of(word * 32 + __ffs(static_cast<int>(bits)) - 1, shared));
    }
  }
}

// Builds the table and the list of idle slots from the state that the latest step has left. Returns
// their number. The whole block calls it.
__device__ inline int prepare_lookup(const Request& of, const Marks& marks, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int slots = of.set.slots;
  int32_t rows[kMaxSlotsPerThread];
  int32_t last_used[kMaxSlotsPerThread];
  uint4 listed{};
#pragma unroll
  for (int j = 0; j < kMaxSlotsPerThread; ++j) {
    const int slot = j * kThreads + thread;
    rows[j] = slot < slots ? __ldcg(of.rows + slot) : kFree;
    last_used[j] = slot < slots ? __ldcg(of.last_used + slot) : kFree;
  }
  if (8 * thread < slots) {
    listed = __ldcg(reinterpret_cast<const uint4*>(of.idle) + thread);
  }
  for (int i = thread; i < kTableSize; i += kThreads) {
    shared.keys[i] = kFree;
    shared.slots[i] = kNoSlot;
  }
#pragma unroll
  for (int i = 0; i < kRowWordsPerThread; ++i) {
    shared.rows[i * kThreads + thread] = 0;
  }
  if (thread < kMaxSlots / 32) {
    shared.used[thread] = 0;
  }
  if (thread < kMaxBlocks) {
    shared.missing_of[thread] = 0;
  }
  shared.uses_idle = false;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kMaxSlotsPerThread; ++j) {
    const int slot = j * kThreads + thread;
    const bool is_current = last_used[j] == marks.latest;
    const uint32_t current = __ballot_sync(~0U, is_current && slot < slots);
    if (lane_index() == 0) {
      shared.current[slot / 32] = current;
    }
    if (rows[j] != kFree) {
      bool inserted = false;
      shared.slots[entry_of(rows[j], inserted, shared)] = static_cast<uint16_t>(slot);
      if (last_used[j] >= marks.listed && !is_current) {
        set_bit(shared.rows, rows[j]);  // last used one step before the latest
      }
    }
  }
  __syncthreads();
  const EightSlots eight = eight_slots(listed, marks.idle_count - 8 * thread, shared.current);
  const int count = __popc(eight.counted);
  int all = 0;
  const int before = sum_before(count_rows(shared) << 16 | count, shared.warp_sums[0], all);
  const int still_idle = all & 0xFFFF;
  int number = before & 0xFFFF;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if ((eight.counted >> i & 1U) != 0) {
      shared.idle[number++] = eight.slots[i];
    }
  }
  visit_rows(still_idle + (before >> 16), shared,
             [&](int at, uint16_t slot) { shared.idle[at] = slot; });
  __syncthreads();
  return still_idle + (all >> 16);
}
#endif
