// One kernel, a cluster of blocks per request. All blocks prepare the same look-up before the ids
// are needed, and look all ids up by themselves. Each one fetches its share of the missing rows.
#include "../common/loads_first.h"
#include "cluster.h"
#include "ready_lookup.h"

constexpr int kWarps = kThreads / kWarp;
constexpr int kRowsInFlight = 2;
constexpr int kFewRequests = 16;  // at most as many have large clusters, which together fit the GPU

// The ids of a thread, and what it finds.
struct Found {
  int32_t id[kMaxIdsPerThread];
  uint16_t entry[kMaxIdsPerThread];   // of the table
  uint16_t slot[kMaxIdsPerThread];    // or kNoSlot
  int16_t missing[kMaxIdsPerThread];  // number among the missing rows of this block, or -1
};

// Numbers of missing rows: of the whole request, of the blocks before this one, and of this one.
struct Misses {
  int all;
  int before;
  int here;
};

// Looks up this thread's ids, and lists the missing rows of this block.
__device__ inline void look_up(const Request& of, Found& found, Shared& shared) {
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    const int at = j * kThreads + static_cast<int>(threadIdx.x);
    found.id[j] = at < of.set.topk ? of.ids[at] : kFree;
  }
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    const int32_t id = found.id[j];
    found.missing[j] = -1;
    if (id == kFree) {
      continue;
    }
    bool inserted = false;
    found.entry[j] = static_cast<uint16_t>(entry_of(id, inserted, shared));
    const uint16_t slot = shared.slots[found.entry[j]];
    found.slot[j] = slot;
    if (inserted) {
      const int number = atomicAdd(&shared.missing_of[block_of(of, id)], 1);
      if (block_of(of, id) == of.rank) {
        found.missing[j] = static_cast<int16_t>(number);
        shared.missing[number] = {id, pool_row(of.set, of.number, id)};
      }
    } else if (slot < kNoSlot && !bit_of(shared.current, slot)) {
      set_bit(shared.used, slot);
      shared.uses_idle = true;
    }
  }
}

__device__ inline Misses count_misses(const Request& of, const Shared& shared) {
  Misses misses{};
  for (int block = 0; block < of.blocks; ++block) {
    misses.all += shared.missing_of[block];
    misses.before += block < of.rank ? shared.missing_of[block] : 0;
  }
  misses.here = shared.missing_of[of.rank];
  return misses;
}

// Victims of this block where they are not simply the first idle slots: this step uses some of
// these, or they are too few. Then the rows follow that only the latest step used, in their order.
// The whole block calls it.
__device__ inline void choose_victims(const Request& of, const Found& found, const Misses& misses,
                                      int idle_count, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto give = [&](int number, uint16_t slot) {
    if (number >= misses.before && number < misses.before + misses.here) {
      shared.victims[number - misses.before] = slot;
    }
  };
  const uint4 listed = *reinterpret_cast<const uint4*>(&shared.idle[8 * thread]);
  const EightSlots eight = eight_slots(listed, idle_count - 8 * thread, shared.used);
  int idle = 0;
  int number = sum_before(__popc(eight.counted), shared.warp_sums[1], idle);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if ((eight.counted >> i & 1U) != 0) {
      give(number++, eight.slots[i]);
    }
  }
  if (misses.all <= idle) {
    return;
  }
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    if (found.id[j] != kFree && found.slot[j] < kNoSlot) {
      set_bit(shared.used, found.slot[j]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRowWordsPerThread; ++i) {
    shared.rows[i * kThreads + thread] = 0;
  }
  __syncthreads();
  for (int entry = thread; entry < kTableSize; entry += kThreads) {
    const uint16_t slot = shared.slots[entry];
    if (slot < kNoSlot && bit_of(shared.current, slot) && !bit_of(shared.used, slot)) {
      set_bit(shared.rows, shared.keys[entry]);
    }
  }
  __syncthreads();
  int left = 0;
  const int before = sum_before(count_rows(shared), shared.warp_sums[0], left);
  visit_rows(idle + before, shared, give);
}

// Rows that a warp has loaded and not stored yet.
struct Held {
  int4 vectors[kRowsInFlight][kWarpTurns<kRowVectors>];
};

// Loads the missing rows `first`, `first + kWarps` ... of this block.
__device__ inline void load_rows(const Request& of, const Shared& shared, int first, int count,
                                 Held& held) {
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    if (first + r * kWarps < count) {
      const int4* row = pool_vectors(of.set, shared.missing[first + r * kWarps].place);
      load_vectors<Cached>(held.vectors[r], row, lane_index(), kWarp, kRowVectors);
    }
  }
}

// Stores them in the slots of the victims.
__device__ inline void store_rows(const Request& of, const Shared& shared, const uint16_t* victims,
                                  int first, int count, int32_t step, const Held& held) {
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    const int number = first + r * kWarps;
    if (number < count) {
      const int slot = victims[number];
      if (lane_index() == 0) {
        of.rows[slot] = shared.missing[number].id;
        of.last_used[slot] = step;
      }
      store_vectors<Cached>(slot_vectors(of.set, of.number, slot), held.vectors[r], lane_index(),
                            kWarp, kRowVectors);
    }
  }
}

// Writes the slot of each id of this block, and the use of hits.
__device__ inline void write_slots(const Request& of, const Found& found, const Shared& shared,
                                   const uint16_t* victims, int32_t step) {
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    if (found.id[j] == kFree || block_of(of, found.id[j]) != of.rank) {
      continue;
    }
    int slot = found.slot[j];
    if (slot >= kNoSlot) {
      slot = victims[shared.slots[found.entry[j]] - kNoSlot];
    } else {
      of.last_used[slot] = step;
    }
    of.out[j * kThreads + static_cast<int>(threadIdx.x)] = slot;
  }
}

__global__ void __launch_bounds__(kThreads, 1) step(HotSet set, Order order) {
  extern __shared__ char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const Request of = request_of(set, order);
  const int thread = static_cast<int>(threadIdx.x);
#ifdef STARTS_EARLY
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  const Marks marks = *of.marks;
  const int idle_count = prepare_lookup(of, marks, shared);
  __cluster_barrier_arrive();  // this block has read the state
#ifdef STARTS_EARLY
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  const int32_t now = *set.step;
  Found found;
  look_up(of, found, shared);
  __cluster_barrier_wait();  // other blocks have read the state, so it may change
  __syncthreads();
  const Misses misses = count_misses(of, shared);
  const int warp = thread / kWarp;
  Held held;
  load_rows(of, shared, warp, misses.here, held);
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    if (found.missing[j] >= 0) {
      shared.slots[found.entry[j]] = static_cast<uint16_t>(kNoSlot + found.missing[j]);
    }
  }
  const uint16_t* victims = shared.idle + misses.before;
  if (shared.uses_idle || misses.all > idle_count) {
    choose_victims(of, found, misses, idle_count, shared);
    victims = shared.victims;
  }
  __syncthreads();
  write_slots(of, found, shared, victims, now);
  store_rows(of, shared, victims, warp, misses.here, now, held);
  constexpr int kFirst = kWarps * kRowsInFlight;
  for (int first = kFirst + warp; first < misses.here; first += kFirst) {
    load_rows(of, shared, first, misses.here, held);
    store_rows(of, shared, victims, first, misses.here, now, held);
  }
  if (of.rank == of.blocks - 1) {
    if (8 * thread < idle_count) {
      reinterpret_cast<uint4*>(of.idle)[thread] =
          *reinterpret_cast<const uint4*>(&shared.idle[8 * thread]);
    }
    if (thread == 0) {
      *of.marks = {now, marks.latest, idle_count};
    }
  }
}

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  const Orders orders = new_orders(layers);
  check(cudaFuncSetAttribute(step, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)),
        "shared memory");
  const int requests = layers.front().requests;
  const int blocks = requests <= kFewRequests ? kMaxBlocks : 1;
#ifdef STARTS_EARLY
  // A step reads the state of its layer before the previous kernel ends, which must be of another.
  const bool starts_early = layers.size() > 1;
#else
  const bool starts_early = false;
#endif
  const ClusterLaunch shape = {requests * blocks, blocks, kThreads, sizeof(Shared), starts_early};
  return {[=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    launch_clusters(step, shape, stream, set, orders.of_layer(set, layer));
  }};
}
