// Warps that each have several rows of a gather in flight.
#pragma once

#include "loads_first.h"
#include "rows.h"

#ifdef __CUDACC__
// The warps of a grid share the rows out. Each warp has all loads of kRows rows, of kVectors
// 16-byte vectors each, in flight before its first store.
template <int kRows, int kVectors, class Gather>
__device__ inline void copy_rows_in_flight(const Gather& gather) {
  const int64_t warp = warp_index();
  const int64_t warps = warp_count();
  const int lane = lane_index();
  for (int64_t first = warp; first < gather.rows; first += warps * kRows) {
    int4 held[kRows][kWarpTurns<kVectors>];
    int destination[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = first + r * warps;
      if (row < gather.rows) {
        const int2 pair = gather.pairs[row];
        destination[r] = pair.y;
        load_vectors<Cached>(held[r], source_vectors(gather, pair.x), lane, kWarp, kVectors);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r * warps < gather.rows) {
        int4* dst = destination_vectors(gather, destination[r]);
        store_vectors<Cached>(dst, held[r], lane, kWarp, kVectors);
      }
    }
  }
}
#endif
