// Eight threads read a line of 128 bytes and reduce it to one word.
#include "operation.h"

__global__ void read_lines(Walk walk) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int read = thread / kLineVectors;
  const int lane = thread % kLineVectors;
  uint32_t word = read < walk.reads ? word_of(walk.pool[vector_of(walk, read) + lane]) : 0;
#pragma unroll
  for (int other = kLineVectors / 2; other > 0; other /= 2) {
    word ^= __shfl_xor_sync(0xffffffff, word, other);
  }
  if (lane == 0 && read < walk.reads) {
    static_cast<uint32_t*>(walk.dst)[read] = word;
  }
}

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  constexpr int kReads = kBlock / kLineVectors;
  read_lines<<<(walk.reads + kReads - 1) / kReads, kBlock, 0, stream>>>(walk);
  return cudaGetLastError();
}
