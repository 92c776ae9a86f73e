// A kernel that resolves, a block per request, and one that gathers, a warp per miss.
#pragma once

#include "../common/loads_first.h"
#include "block_resolve.h"

// Misses of each request: their number, and room for topk of them.
struct MissLists {
  int* counts;
  Miss* misses;
};

__global__ void __launch_bounds__(kResolveThreads, 1)
    resolve(HotSet set, UseOrder order, MissLists lists) {
  extern __shared__ char memory[];
  Resolving& shared = *reinterpret_cast<Resolving*>(memory);
  const int request = static_cast<int>(blockIdx.x);
  const LookedUp found = look_up(set, order, request, shared);
  assign_slots(found, shared);
  update(set, order, request, found, shared);
  for (int i = static_cast<int>(threadIdx.x); i < found.misses; i += kResolveThreads) {
    lists.misses[static_cast<int64_t>(request) * set.topk + i] = shared.misses[i];
  }
  if (threadIdx.x == 0) {
    lists.counts[request] = found.misses;
  }
}

__global__ void gather(HotSet set, MissLists lists) {
  const int request = static_cast<int>(blockIdx.y);
  const int64_t warp = warp_index();
  if (warp < lists.counts[request]) {
    const Miss miss = lists.misses[static_cast<int64_t>(request) * set.topk + warp];
    copy_row<Cached, kRowVectors>(slot_vectors(set, request, miss.slot),
                                  pool_vectors(set, pool_row(set, request, miss.id)));
  }
}

// Lists of one layer.
inline MissLists of_layer(const MissLists& lists, const HotSet& set, int layer) {
  const int64_t first = static_cast<int64_t>(layer) * set.requests;
  return {lists.counts + first, lists.misses + first * set.topk};
}

inline void launch_resolve(const HotSet& set, const UseOrder& order, const MissLists& lists,
                           cudaStream_t stream) {
  resolve<<<set.requests, kResolveThreads, sizeof(Resolving), stream>>>(set, order, lists);
}

inline void launch_gather(const HotSet& set, const MissLists& lists, cudaStream_t stream) {
  const dim3 blocks(blocks_for(set.topk * kWarp), set.requests);
  gather<<<blocks, kBlock, 0, stream>>>(set, lists);
}
