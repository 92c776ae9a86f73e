// A warp owns a row: it loads all of it, 512 bytes an instruction, then stores it.
#include "operation.h"

template <int kTurns>
__global__ void copy_rows(Walk walk) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= walk.reads) {
    return;
  }
  const int4* src = walk.pool + vector_of(walk, row);
  int4* dst = static_cast<int4*>(walk.dst) + static_cast<int64_t>(row) * walk.read_vectors;
  int4 held[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane;
    if (i < walk.read_vectors) {
      held[turn] = src[i];
    }
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane;
    if (i < walk.read_vectors) {
      dst[i] = held[turn];
    }
  }
}

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  constexpr int kRows = kBlock / kWarp;
  const int blocks = (walk.reads + kRows - 1) / kRows;
  if (walk.read_vectors <= kWarp) {
    copy_rows<1><<<blocks, kBlock, 0, stream>>>(walk);
  } else if (walk.read_vectors <= 2 * kWarp) {
    copy_rows<2><<<blocks, kBlock, 0, stream>>>(walk);
  } else if (walk.read_vectors <= kMaxRowVectors) {
    copy_rows<kMaxRowVectors / kWarp><<<blocks, kBlock, 0, stream>>>(walk);
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}
