// A warp owns a row: every lane has all its loads in flight before its first store.
#include "../common/loads_first.h"
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  const int lane = lane_index();
  if (warp_index() >= gather.rows) {
    return;
  }
  const auto [src, dst] = row_of_pair(gather, warp_index());
  int4 held[kWarpTurns<kRowVectors>];
  load_vectors<Cached>(held, src, lane, kWarp, kRowVectors);
  store_vectors<Cached>(dst, held, lane, kWarp, kRowVectors);
}

void launch(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
}
