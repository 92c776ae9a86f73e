// Warps that fetch missing rows, each with several rows in flight.
#pragma once

#include "../common/loads_first.h"
#include "block_resolve.h"

#ifdef __CUDACC__
constexpr int kRowsInFlight = 4;

// One of `warps` warps fetches its share of the misses of a request: the one at `warp`, and every
// `warps`-th after it. All loads of kRowsInFlight rows are in flight before the first store.
__device__ inline void fetch_rows(const HotSet& set, int request, const Miss* misses, int count,
                                  int warp, int warps) {
  const int lane = lane_index();
  for (int first = warp; first < count; first += warps * kRowsInFlight) {
    int4 held[kRowsInFlight][kWarpTurns<kRowVectors>];
    int slots[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const int i = first + r * warps;
      if (i < count) {
        const Miss miss = misses[i];
        slots[r] = miss.slot;
        load_vectors<Cached>(held[r], pool_vectors(set, pool_row(set, request, miss.id)), lane,
                             kWarp, kRowVectors);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (first + r * warps < count) {
        store_vectors<Cached>(slot_vectors(set, request, slots[r]), held[r], lane, kWarp,
                              kRowVectors);
      }
    }
  }
}
#endif
