// A thread owns a row and copies it byte by byte.
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  if (thread_index() >= gather.rows) {
    return;
  }
  const int2 pair = gather.pairs[thread_index()];
  const uint8_t* src = source_bytes(gather, pair.x);
  uint8_t* dst = destination_bytes(gather, pair.y);
  for (int i = 0; i < kRowBytes; ++i) {
    dst[i] = src[i];
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<blocks_for(gather.rows), kBlock, 0, stream>>>(gather);
}
