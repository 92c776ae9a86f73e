// A gather in which a warp copies a row.
#pragma once

#include "loads_first.h"
#include "rows.h"

#ifdef __CUDACC__
// Copies the calling warp's row of kVectors vectors, with all loads of a lane in flight before its
// first store. The grid has at least a warp per row.
template <class Access, int kVectors, class Gather>
__device__ inline void copy_row_of_warp(const Gather& gather) {
  const int64_t row = warp_index();
  const int lane = lane_index();
  if (row < gather.rows) {
    const auto [src, dst] = row_of_pair(gather, row);
    int4 held[kWarpTurns<kVectors>];
    load_vectors<Access>(held, src, lane, kWarp, kVectors);
    store_vectors<Access>(dst, held, lane, kWarp, kVectors);
  }
}
#endif
