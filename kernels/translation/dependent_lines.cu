// One thread reads a vector of each line; the next address depends on it.
#include "operation.h"

__global__ void read_in_turn(Walk walk) {
  // The block first looks up the line of each read, so that only the reads themselves are timed.
  __shared__ uint32_t lines[kMaxChained];
  for (int i = threadIdx.x; i < walk.reads; i += blockDim.x) {
    lines[i] = static_cast<uint32_t>(vector_of(walk, i) / kLineVectors);
  }
  __syncthreads();
  if (threadIdx.x > 0) {
    return;
  }
  uint32_t word = 0;
  for (int i = 0; i < walk.reads; ++i) {
    const int64_t line = lines[i] + (word & walk.zero);
    word = word_of(walk.pool[line * kLineVectors]);
    static_cast<uint32_t*>(walk.dst)[i] = word;
  }
}

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  if (walk.reads > kMaxChained) {
    return cudaErrorInvalidValue;
  }
  read_in_turn<<<1, kBlock, 0, stream>>>(walk);
  return cudaGetLastError();
}
