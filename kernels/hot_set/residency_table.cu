// One kernel, a cluster of blocks per request, with a table of the rows in the hot set. A block
// looks its share of the ids up. Most of its warps, the carriers, then load the first missing rows
// into registers. Meanwhile the other warps, the librarians, choose the victims.
#include "../common/loads_first.h"
#include "cluster.h"
#include "residency.h"

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarp;
constexpr int kLibrarians = 4 * kWarp;  // threads
constexpr int kCarrierWarps = kWarps - kLibrarians / kWarp;
constexpr int kRowsInFlight = 4;
constexpr int kFewRequests = 16;  // at most as many have large clusters, which together fit the GPU
constexpr int kMaxBlocks = 8;
constexpr int kMaxWords = kMaxSlots / 32;
constexpr int kMaxIdsPerThread = kMaxTopk / kThreads;
constexpr int kMaxIdlePerThread = kMaxSlots / kLibrarians;
constexpr int kRowWordsPerThread = kMaxContextRows / 32 / kLibrarians;
static_assert(kMaxIdlePerThread <= 64, "a thread's idle slots must fit a mask");

struct MissingRow {
  int32_t id;
  int32_t place;   // row of the pool
  int32_t index;   // among the ids of the request
  int32_t number;  // among the missing rows of this block, or -1 if the id is a repeat
};

struct Shared {
  uint32_t hits[kMaxBlocks][kMaxWords];  // of each block, a bit per slot
  int missing_of[kMaxBlocks];            // number of missing rows of each block
  int repeats_of[kMaxBlocks];
  uint32_t used_now[kMaxWords];  // the hits of all blocks
  uint32_t used_before[kMaxWords];
  uint32_t evicted[kMaxWords];
  alignas(16) uint16_t idle[kMaxSlots];
  int idle_count;
  MissingRow missing[kMaxTopk];
  int missing_count;  // with repeats
  int next_missing;   // the first one that no warp has taken
  uint16_t victims[kMaxTopk];
  // A bit per row that the previous step used and this one does not. Librarian t has the words of
  // row t; the padding spreads them over the banks.
  uint32_t left_rows[kLibrarians][kRowWordsPerThread + 1];
  int warp_sums[kLibrarians / kWarp];
  bool is_short;  // more rows are missing than slots are idle
};

// A request in one layer, as the threads of a block see it.
struct Request {
  const HotSet& set;
  int number;
  const int32_t* ids;
  int32_t* out;
  int32_t* rows;
  int32_t* last_used;
  uint16_t* slot_of_row;
  uint16_t* idle;
  int* idle_count;
  uint32_t* used;
  int rank;    // of the block in its cluster
  int blocks;  // of the cluster
};

__device__ inline void sync_librarians() {
  asm volatile("bar.sync 1, %0;" ::"n"(kLibrarians) : "memory");
}

// The sum of `count` over all librarians before this one, and over all of them.
__device__ inline int sum_before(int count, Shared& shared, int& total) {
  const int lane = lane_index();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  int sum = count;
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const int other = __shfl_up_sync(~0U, sum, delta);
    sum += lane >= delta ? other : 0;
  }
  sync_librarians();  // the previous sums have been read
  if (lane == kWarp - 1) {
    shared.warp_sums[warp] = sum;
  }
  sync_librarians();
  int before = sum - count;
  total = 0;
#pragma unroll
  for (int i = 0; i < kLibrarians / kWarp; ++i) {
    before += i < warp ? shared.warp_sums[i] : 0;
    total += shared.warp_sums[i];
  }
  return before;
}

// The ids that a thread looks up, and what it finds.
struct Found {
  int32_t id[kMaxIdsPerThread];
  int index[kMaxIdsPerThread];
  int missing[kMaxIdsPerThread];       // place in the list of missing rows, or -1
  uint16_t claimed[kMaxIdsPerThread];  // the table's slot before the claim of a missing row
};

// Looks up this thread's ids. Hits get their slots; missing rows are listed and claimed.
__device__ inline void look_up(const Request& of, int32_t step, Found& found, Shared& shared) {
  const HotSet& set = of.set;
  uint16_t slot[kMaxIdsPerThread];
  int32_t place[kMaxIdsPerThread];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    found.index[j] = ((j * kWarps + warp) * of.blocks + of.rank) * kWarp + lane_index();
    found.id[j] = found.index[j] < set.topk ? of.ids[found.index[j]] : kFree;
  }
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    if (found.id[j] != kFree) {
      slot[j] = __ldcg(of.slot_of_row + found.id[j]);
      place[j] = pool_row(set, of.number, found.id[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    found.missing[j] = -1;
    if (found.id[j] == kFree) {
      continue;
    }
    if (slot[j] < set.slots) {
      of.out[found.index[j]] = slot[j];
      of.last_used[slot[j]] = step;
      atomicOr(&shared.hits[of.rank][slot[j] / 32], 1U << slot[j] % 32);
    } else {
      found.missing[j] = atomicAdd(&shared.missing_count, 1);
      shared.missing[found.missing[j]] = {found.id[j], place[j], found.index[j], -1};
      found.claimed[j] = atomicCAS(of.slot_of_row + found.id[j], kAbsent, kClaimed);
    }
  }
}

// Numbers the missing rows that this thread has claimed. Others are repeats of an id.
__device__ inline void number_claims(const Request& of, const Found& found, Shared& shared) {
#pragma unroll
  for (int j = 0; j < kMaxIdsPerThread; ++j) {
    if (found.missing[j] >= 0) {
      if (found.claimed[j] == kAbsent) {
        shared.missing[found.missing[j]].number = atomicAdd(&shared.missing_of[of.rank], 1);
      } else {
        atomicAdd(&shared.repeats_of[of.rank], 1);
      }
    }
  }
}

// Sends this block's hits and counts to the other blocks of the cluster.
__device__ inline void send_hits(const Request& of, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int to = 0; to < of.blocks; ++to) {
    if (to == of.rank) {
      continue;
    }
    auto* other = static_cast<Shared*>(__cluster_map_shared_rank(&shared, to));
    for (int word = thread; word < of.set.slots / 32; word += kLibrarians) {
      other->hits[of.rank][word] = shared.hits[of.rank][word];
    }
    if (thread == 0) {
      other->missing_of[of.rank] = shared.missing_of[of.rank];
      other->repeats_of[of.rank] = shared.repeats_of[of.rank];
    }
  }
}

// Numbers of missing rows: of all blocks, of those before this one, and of this one.
struct Misses {
  int all;
  int before;
  int here;
};

__device__ inline Misses count_misses(const Request& of, const Shared& shared) {
  Misses misses{};
  for (int block = 0; block < of.blocks; ++block) {
    misses.all += shared.missing_of[block];
    misses.before += block < of.rank ? shared.missing_of[block] : 0;
  }
  misses.here = shared.missing_of[of.rank];
  return misses;
}

// Evicts the row of `slot` for the missing row with this number.
__device__ inline void give_slot(int slot, int number, const Misses& misses, Shared& shared) {
  atomicOr(&shared.evicted[slot / 32], 1U << slot % 32);
  if (number >= misses.before && number < misses.before + misses.here) {
    shared.victims[number - misses.before] = static_cast<uint16_t>(slot);
  }
}

// The slots of a librarian that no step has used since they became idle: a bit per slot from
// `first` on in the list, and the number of the first of them among those of all librarians.
struct StillIdle {
  uint64_t mask;
  int first;
  int number;
  int all;  // of all librarians
};

// Librarians find the slots that stay idle in this step. All blocks find the same.
__device__ inline StillIdle find_idle(const Request& of, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int word = thread; word < of.set.slots / 32; word += kLibrarians) {
    uint32_t used = 0;
    for (int block = 0; block < of.blocks; ++block) {
      used |= shared.hits[block][word];
    }
    shared.used_now[word] = used;
  }
  sync_librarians();
  const int groups = (shared.idle_count + 8 * kLibrarians - 1) / (8 * kLibrarians);
  StillIdle idle = {0, thread * groups * 8, 0, 0};
  for (int group = 0; group < groups; ++group) {
    const int first = idle.first + group * 8;
    alignas(16) uint16_t slots[8];
    *reinterpret_cast<uint4*>(slots) = *reinterpret_cast<const uint4*>(&shared.idle[first]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (first + i < shared.idle_count) {
        const uint32_t is_used = shared.used_now[slots[i] / 32] >> slots[i] % 32 & 1U;
        idle.mask |= static_cast<uint64_t>(is_used ^ 1U) << (group * 8 + i);
      }
    }
  }
  idle.number = sum_before(__popcll(idle.mask), shared, idle.all);
  return idle;
}

__device__ inline int first_slot(const StillIdle& idle, uint64_t mask, const Shared& shared) {
  return shared.idle[idle.first + __ffsll(static_cast<long long>(mask)) - 1];
}

// Librarians give the missing rows the oldest of these slots.
__device__ inline void choose_victims(const StillIdle& idle, const Misses& misses, Shared& shared) {
  uint64_t mask = idle.mask;
  for (int number = idle.number; mask != 0 && number < misses.all; ++number, mask &= mask - 1) {
    give_slot(first_slot(idle, mask, shared), number, misses, shared);
  }
  sync_librarians();
}

// Librarians write the other slots for the next step; blocks share the work.
__device__ inline void write_idle(const Request& of, const StillIdle& idle, const Misses& misses,
                                  const Shared& shared) {
  if (static_cast<int>(threadIdx.x) % of.blocks != of.rank) {
    return;
  }
  int number = idle.number;
  for (uint64_t mask = idle.mask; mask != 0; mask &= mask - 1, ++number) {
    if (number >= misses.all) {
      of.idle[number - misses.all] = static_cast<uint16_t>(first_slot(idle, mask, shared));
    }
  }
}

// Librarians append the slots that the previous step used and this one does not, in the order of
// their rows, to the `idle` ones that remain. If there are too few of these, the first ones are
// victims. Only the first block writes the list. Returns the number of slots that were left.
__device__ inline int order_left_slots(const Request& of, const Misses& misses, int idle,
                                       Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int word = thread / kWarp; word < of.set.slots / 32; word += kLibrarians / kWarp) {
    const uint32_t left = shared.used_before[word] & ~shared.used_now[word];
    if (left >> lane_index() & 1U) {
      const uint32_t row = static_cast<uint32_t>(of.rows[word * 32 + lane_index()]);
      constexpr uint32_t kRowsPerThread = kRowWordsPerThread * 32;
      atomicOr(&shared.left_rows[row / kRowsPerThread][row % kRowsPerThread / 32], 1U << row % 32);
    }
  }
  sync_librarians();
  const uint32_t* words = shared.left_rows[thread];
  int here = 0;
#pragma unroll
  for (int i = 0; i < kRowWordsPerThread; ++i) {
    here += __popc(words[i]);
  }
  int left = 0;
  int number = idle + sum_before(here, shared, left);
  for (int i = 0; here > 0; ++i) {
    for (uint32_t word = words[i]; word != 0; word &= word - 1, ++number, --here) {
      const int row = (thread * kRowWordsPerThread + i) * 32 + __ffs(static_cast<int>(word)) - 1;
      const int slot = __ldcg(of.slot_of_row + row);
      if (number < misses.all) {
        give_slot(slot, number, misses, shared);
      } else if (of.rank == 0) {
        of.idle[number - misses.all] = static_cast<uint16_t>(slot);
      }
    }
  }
  sync_librarians();
  return left;
}

// Rows that a warp has loaded and not stored yet.
struct Held {
  int4 vectors[kRowsInFlight][kWarpTurns<kRowVectors>];
};

// Loads the missing rows `first`, `first + step` ... of this block.
__device__ inline void load_rows(const Request& of, const Shared& shared, int first, int step,
                                 Held& held) {
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    if (first + r * step < shared.missing_count) {
      const int4* row = pool_vectors(of.set, shared.missing[first + r * step].place);
      load_vectors<Cached>(held.vectors[r], row, lane_index(), kWarp, kRowVectors);
    }
  }
}

// Stores them in their slots, and notes where they are. Repeats of an id have no slot.
__device__ inline void store_rows(const Request& of, const Shared& shared, int first, int step,
                                  int32_t now, const Held& held) {
  int slots[kRowsInFlight];
  int32_t evicted[kRowsInFlight];
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    const int i = first + r * step;
    const int number = i < shared.missing_count ? shared.missing[i].number : -1;
    slots[r] = number < 0 ? -1 : shared.victims[number];
    evicted[r] = number < 0 ? kFree : of.rows[slots[r]];
  }
#pragma unroll
  for (int r = 0; r < kRowsInFlight; ++r) {
    if (slots[r] < 0) {
      continue;
    }
    store_vectors<Cached>(slot_vectors(of.set, of.number, slots[r]), held.vectors[r], lane_index(),
                          kWarp, kRowVectors);
    __syncwarp();  // all lanes have read the evicted row
    if (lane_index() == 0) {
      const MissingRow row = shared.missing[first + r * step];
      if (evicted[r] != kFree) {
        of.slot_of_row[evicted[r]] = kAbsent;
      }
      of.rows[slots[r]] = row.id;
      of.last_used[slots[r]] = now;
      of.slot_of_row[row.id] = static_cast<uint16_t>(slots[r]);
      of.out[row.index] = slots[r];
    }
  }
}

__device__ inline Request request_of(const HotSet& set, const Residency& residency) {
  const int blocks = static_cast<int>(__clusterSizeInBlocks());
  const int number = static_cast<int>(blockIdx.x) / blocks;
  const int64_t slots = static_cast<int64_t>(number) * set.slots;
  const int64_t ids = static_cast<int64_t>(number) * set.topk;
  return {set,
          number,
          set.ids + ids,
          set.out + ids,
          set.rows + slots,
          set.last_used + slots,
          residency.slot_of_row + static_cast<int64_t>(number) * set.context_rows,
          residency.idle + slots,
          residency.idle_count + number,
          residency.used + slots / 32,
          static_cast<int>(__clusterRelativeBlockRank()),
          blocks};
}

// Copies the state of the previous step, before the ids are needed.
__device__ inline void read_state(const Request& of, Shared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  auto* idle = reinterpret_cast<uint4*>(shared.idle);
  for (int i = thread; i < of.set.slots / 8; i += kThreads) {
    idle[i] = __ldcg(reinterpret_cast<const uint4*>(of.idle) + i);
  }
  for (int word = thread; word < of.set.slots / 32; word += kThreads) {
    shared.used_before[word] = __ldcg(of.used + word);
    shared.hits[of.rank][word] = 0;
    shared.evicted[word] = 0;
  }
  uint32_t* left = &shared.left_rows[0][0];
  for (int i = thread; i < kLibrarians * (kRowWordsPerThread + 1); i += kThreads) {
    left[i] = 0;
  }
  if (thread == 0) {
    shared.idle_count = __ldcg(of.idle_count);
    shared.missing_count = 0;
    shared.next_missing = kCarrierWarps * kRowsInFlight;
    shared.missing_of[of.rank] = 0;
    shared.repeats_of[of.rank] = 0;
  }
}

__global__ void __launch_bounds__(kThreads, 1) step(HotSet set, Residency residency) {
  extern __shared__ char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const Request of = request_of(set, residency);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const bool is_librarian = threadIdx.x < kLibrarians;
  __cluster_barrier_arrive_relaxed();  // this block runs, so that others may write to its memory
#ifdef STARTS_EARLY
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  read_state(of, shared);
#ifdef STARTS_EARLY
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  __syncthreads();
  const int32_t now = *set.step;
  Found found;
  look_up(of, now, found, shared);
  __cluster_barrier_wait();
  __syncthreads();
  Held held;
  const int carrier = warp - kLibrarians / kWarp;
  if (!is_librarian) {
    load_rows(of, shared, carrier, kCarrierWarps, held);
  }
  number_claims(of, found, shared);
  __syncthreads();
  Misses misses{};
  StillIdle idle{};
  if (is_librarian) {
    send_hits(of, shared);
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    misses = count_misses(of, shared);
    idle = find_idle(of, shared);
    choose_victims(idle, misses, shared);
    if (threadIdx.x == 0) {
      shared.is_short = misses.all > idle.all;
    }
  } else {
    __cluster_barrier_arrive_relaxed();  // a release would wait for the loads
  }
  __syncthreads();
  const bool is_short = shared.is_short;
  int left = 0;
  if (is_short) {
    if (is_librarian) {
      left = order_left_slots(of, misses, idle.all, shared);
    } else {
      __cluster_barrier_wait();
    }
    __cluster_barrier_arrive();  // all blocks have read the rows of the slots
    __cluster_barrier_wait();
    __syncthreads();
  }
  if (!is_librarian) {
    store_rows(of, shared, carrier, kCarrierWarps, now, held);
    if (!is_short) {
      __cluster_barrier_wait();
    }
  } else {
    write_idle(of, idle, misses, shared);
    if (of.rank == 0) {
      if (!is_short) {
        left = order_left_slots(of, misses, idle.all, shared);
      }
      for (int word = static_cast<int>(threadIdx.x); word < set.slots / 32; word += kLibrarians) {
        of.used[word] = shared.used_now[word] | shared.evicted[word];
      }
      if (threadIdx.x == 0) {
        *of.idle_count = idle.all + left - misses.all;
      }
    }
  }
  for (;;) {
    int first = 0;
    if (lane_index() == 0) {
      first = atomicAdd(&shared.next_missing, kRowsInFlight);
    }
    first = __shfl_sync(~0U, first, 0);
    if (first >= shared.missing_count) {
      break;
    }
    load_rows(of, shared, first, 1, held);
    store_rows(of, shared, first, 1, now, held);
  }
  int repeats = 0;
  for (int block = 0; block < of.blocks; ++block) {
    repeats += shared.repeats_of[block];
  }
  if (repeats > 0) {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
#pragma unroll
    for (int j = 0; j < kMaxIdsPerThread; ++j) {
      if (found.missing[j] >= 0 && found.claimed[j] != kAbsent) {
        of.out[found.index[j]] = __ldcg(of.slot_of_row + found.id[j]);
      }
    }
  }
}

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  const Residencies residencies = new_residencies(layers);
  check(cudaFuncSetAttribute(step, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)),
        "shared memory");
  const int requests = layers.front().requests;
  const int blocks = requests <= kFewRequests ? kMaxBlocks : 1;
#ifdef STARTS_EARLY
  const bool starts_early =
      layers.size() > 1;  // a step may not start before that of its layer ends
#else
  const bool starts_early = false;
#endif
  const ClusterLaunch shape = {requests * blocks, blocks, kThreads, sizeof(Shared), starts_early};
  return {[=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    launch_clusters(step, shape, stream, set, residencies.of_layer(set, layer));
  }};
}
