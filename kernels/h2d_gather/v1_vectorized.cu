// A thread owns a row and copies it in 16-byte vectors.
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= gather.rows) {
    return;
  }
  const int2 pair = gather.pairs[row];
  const int4* src = source_vectors(gather, pair.x);
  int4* dst = destination_vectors(gather, pair.y);
#pragma unroll
  for (int i = 0; i < kRowVectors; ++i) {
    dst[i] = src[i];
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<blocks_for(gather.rows), kBlock, 0, stream>>>(gather);
}
