// One kernel: a block per request resolves, and other blocks fetch. Missing rows are loaded into
// registers before their slots are known. The resolving blocks come first in the grid, so that no
// block waits for one that cannot run.
#include <algorithm>
#include <cuda/atomic>

#include "../common/loads_first.h"
#include "../common/sm_count.h"
#include "cluster.h"
#include "table_resolve.h"

#ifndef MAX_FETCH_BLOCKS  // a flag of trials
#define MAX_FETCH_BLOCKS 24
#endif
constexpr int kMaxFetchBlocks = MAX_FETCH_BLOCKS;  // of a request
constexpr int kFetchWarps = 8;                     // of a fetching block; its other warps end
constexpr int kRowsInFlight = 4;                   // of a warp
constexpr int kResolvingWarps = kTableThreads / kWarp;

// Words by which a resolving block gives its misses away. Each carries the number of its step, so
// nothing is reset and nothing has to be ordered.
struct Handoff {
  uint64_t* counts;     // [requests, kCountStride]: number of misses
  uint64_t* pool_rows;  // [requests, topk]
  uint64_t* slots;      // [requests, topk]
};

constexpr int kCountStride = 16;  // words of 128 bytes

using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

__device__ inline void give(uint64_t& word, int32_t step, int value) {
  // Memory begins with zeros, which belong to no step.
  Word(word).store(static_cast<uint64_t>(step + 1) << 32 | static_cast<uint32_t>(value),
                   cuda::memory_order_relaxed);
}

__device__ inline int take(uint64_t& word, int32_t step) {
  uint64_t found;
  do {
    found = Word(word).load(cuda::memory_order_relaxed);
  } while (found >> 32 != static_cast<uint32_t>(step + 1));
  return static_cast<int>(static_cast<uint32_t>(found));
}

// Rows that a warp has loaded and not stored yet.
template <int kRows>
struct Held {
  int4 vectors[kRows][kWarpTurns<kRowVectors>];

  __device__ void load(int row, const HotSet& set, int pool_row) {
    load_vectors<Cached>(vectors[row], pool_vectors(set, pool_row), lane_index(), kWarp,
                         kRowVectors);
  }

  __device__ void store(int row, const HotSet& set, int request, int slot) {
    store_vectors<Cached>(slot_vectors(set, request, slot), vectors[row], lane_index(), kWarp,
                          kRowVectors);
  }
};

// A fetching block: its warps take the misses that the resolving block leaves, in turn.
__device__ inline void fetch(const HotSet& set, const Handoff& handoff, int request, int block,
                             int blocks) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (warp >= kFetchWarps) {
    return;
  }
  const int32_t step = *set.step;
  const int misses = take(handoff.counts[request * kCountStride], step);
  const int64_t list = static_cast<int64_t>(request) * set.topk;
  const int warps = blocks * kFetchWarps;
  const int first = kResolvingWarps + block + warp * blocks;
  for (int base = first; base < misses; base += warps * kRowsInFlight) {
    Held<kRowsInFlight> held;
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (const int i = base + r * warps; i < misses) {
        held.load(r, set, take(handoff.pool_rows[list + i], step));
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (const int i = base + r * warps; i < misses) {
        held.store(r, set, request, take(handoff.slots[list + i], step));
      }
    }
  }
}

// A resolving block: each warp fetches a miss, and all others if no block fetches.
__device__ inline void resolve(const HotSet& set, const Residency& residency,
                               const Handoff& handoff, int request, bool gives,
                               TableShared& shared) {
  TableResolve step(set, residency, request, shared);
  step.find();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int thread = static_cast<int>(threadIdx.x);
  const int misses = shared.misses;
  const int64_t list = static_cast<int64_t>(request) * set.topk;
  gives = gives && misses > kResolvingWarps;
  if (thread == 0) {
    give(handoff.counts[request * kCountStride], *set.step, misses);
  }
  Held<1> held;
  if (warp < misses) {
    held.load(0, set, shared.miss_pool_rows[warp]);
  }
  if (gives) {
    for (int i = kResolvingWarps + thread; i < misses; i += kTableThreads) {
      give(handoff.pool_rows[list + i], *set.step, shared.miss_pool_rows[i]);
    }
  }
  step.evict();
  if (gives) {
    for (int i = kResolvingWarps + thread; i < misses; i += kTableThreads) {
      give(handoff.slots[list + i], *set.step, shared.miss_slots[i]);
    }
  }
  step.store();
  if (warp < misses) {
    held.store(0, set, request, shared.miss_slots[warp]);
  }
  if (gives) {
    return;
  }
  for (int base = kResolvingWarps + warp; base < misses; base += kResolvingWarps * 2) {
    Held<2> two;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (const int i = base + r * kResolvingWarps; i < misses) {
        two.load(r, set, shared.miss_pool_rows[i]);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (const int i = base + r * kResolvingWarps; i < misses) {
        two.store(r, set, request, shared.miss_slots[i]);
      }
    }
  }
}

__global__ void __launch_bounds__(kTableThreads, 1)
    step(HotSet set, Residency residency, Handoff handoff) {
  __shared__ TableShared shared;
#ifdef STARTS_EARLY
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
  const int block = static_cast<int>(blockIdx.x);
  const int fetching = static_cast<int>(gridDim.x) / set.requests - 1;
  if (block < set.requests) {
    resolve(set, residency, handoff, block, fetching > 0, shared);
  } else {
    fetch(set, handoff, block % set.requests, block / set.requests - 1, fetching);
  }
}

// The memory of handoffs of all layers.
class Handoffs {
 public:
  explicit Handoffs(const std::vector<HotSet>& layers)
      : counts_(int64_t{layers.front().requests} * kCountStride),
        lists_(int64_t{layers.front().requests} * layers.front().topk),
        words_(on_device<uint64_t>(layers.size() * static_cast<size_t>(counts_ + 2 * lists_))) {
    const size_t bytes = layers.size() * static_cast<size_t>(counts_ + 2 * lists_) * 8;
    check(cudaMemset(words_.get(), 0, bytes), "handoffs");
  }

  Handoff of(int layer) const {
    uint64_t* first = words_.get() + layer * (counts_ + 2 * lists_);
    return {first, first + counts_, first + counts_ + lists_};
  }

 private:
  int64_t counts_;  // words of a layer
  int64_t lists_;
  std::shared_ptr<uint64_t[]> words_;
};

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  const Residencies residencies(layers);
  const Handoffs handoffs(layers);
  const int requests = layers.front().requests;
  const int fetching = std::clamp(sm_count() / requests - 1, 0, kMaxFetchBlocks);
#ifdef STARTS_EARLY
  const bool starts_early = layers.size() > 1;  // not before the same layer's previous step ends
#else
  const bool starts_early = false;
#endif
  const ClusterLaunch shape = {requests * (1 + fetching), 1, kTableThreads, 0, starts_early};
  return {[=](int layer, cudaStream_t stream) {
    launch_clusters(step, shape, stream, layers[static_cast<size_t>(layer)], residencies.of(layer),
                    handoffs.of(layer));
  }};
}
