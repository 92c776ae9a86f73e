// A warp owns a row: lanes are shifted so that each load instruction covers whole 128-byte lines.
#include "../common/loads_first.h"
#include "operator.h"

constexpr int kLineVectors = 128 / 16;

__global__ void gather_rows(Gather gather) {
  const int lane = lane_index();
  if (warp_index() >= gather.rows) {
    return;
  }
  const auto [src, dst] = row_of_pair(gather, warp_index());
  const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(src) / 16 % kLineVectors);
  constexpr int kTurns = kWarpTurns<kRowVectors + kLineVectors - 1>;
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
