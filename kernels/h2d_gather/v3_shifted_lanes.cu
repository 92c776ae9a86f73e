// A warp owns a row: lanes are shifted so that each load instruction covers whole 128-byte lines.
#include "operator.h"

constexpr int kLineVectors = 128 / 16;

__global__ void gather_rows(Gather gather) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= gather.rows) {
    return;
  }
  const int2 pair = gather.pairs[row];
  const int4* src = source_vectors(gather, pair.x);
  int4* dst = destination_vectors(gather, pair.y);
  const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(src) / 16 % kLineVectors);
  constexpr int kTurns = (kRowVectors + kLineVectors - 1 + kWarp - 1) / kWarp;
  int4 held[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane - shift;
    if (i >= 0 && i < kRowVectors) {
      held[turn] = src[i];
    }
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane - shift;
    if (i >= 0 && i < kRowVectors) {
      dst[i] = held[turn];
    }
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
}
