// A thread owns a row and copies it in 16-byte vectors.
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  if (thread_index() >= gather.rows) {
    return;
  }
  const auto [src, dst] = row_of_pair(gather, thread_index());
#pragma unroll
  for (int i = 0; i < kRowVectors; ++i) {
    dst[i] = src[i];
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<blocks_for(gather.rows), kBlock, 0, stream>>>(gather);
}
