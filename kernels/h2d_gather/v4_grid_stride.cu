// Persistent warps stride over the rows; the launch is bounded by the write-up's formula for 16
// SMs.
#include <algorithm>

#include "../common/check.h"
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  count_sm(gather);
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  for (int64_t row = warp; row < gather.rows; row += warps) {
    const int2 pair = gather.pairs[row];
    const int4* src = source_vectors(gather, pair.x);
    int4* dst = destination_vectors(gather, pair.y);
    constexpr int kTurns = (kRowVectors + kWarp - 1) / kWarp;
    int4 held[kTurns];
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kWarp + lane;
      if (i < kRowVectors) {
        held[turn] = src[i];
      }
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kWarp + lane;
      if (i < kRowVectors) {
        dst[i] = held[turn];
      }
    }
  }
}

// Blocks that 16 SMs hold at once. The query takes longer than a launch, so it is made once.
static int resident_blocks() {
  constexpr int kSmLimit = 16;
  static const int blocks = [] {
    int blocks_per_sm = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, gather_rows, kBlock, 0),
          "occupancy");
    return kSmLimit * blocks_per_sm;
  }();
  return blocks;
}

void launch(const Gather& gather, cudaStream_t stream) {
  const int blocks = std::min(blocks_for(gather.rows * kWarp), resident_blocks());
  gather_rows<<<blocks, kBlock, 0, stream>>>(gather);
}
