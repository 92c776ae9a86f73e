// A warp owns a row: its lanes copy neighbouring 16-byte vectors, 512 bytes and then the rest.
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  if (warp_index() >= gather.rows) {
    return;
  }
  const auto [src, dst] = row_of_pair(gather, warp_index());
#pragma unroll
  for (int i = lane_index(); i < kRowVectors; i += kWarp) {
    dst[i] = src[i];
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
}
