// Rows that several pairs need cross the link once.
#pragma once

#include "../common/loads_first.h"
#include "operator.h"

// Copies the rows of pair number `index` by a warp. Pairs of one source row are neighbours: the
// warp of the first pair reads the row for all of them.
__device__ inline void fetch_once(const Gather& gather, int64_t index) {
  const int source = gather.pairs[index].x;
  if (index > 0 && gather.pairs[index - 1].x == source) {
    return;
  }
  int4 held[kWarpTurns<kRowVectors>];
  load_vectors<Streaming>(held, source_vectors(gather, source), lane_index(), kWarp, kRowVectors);
  for (int64_t same = index; same < gather.rows && gather.pairs[same].x == source; ++same) {
    int4* dst = destination_vectors(gather, gather.pairs[same].y);
    store_vectors<Streaming>(dst, held, lane_index(), kWarp, kRowVectors);
  }
}
