// A slot of the pool is whole 128-byte lines: the row without its 16 bytes of scales, which are in
// device memory.
#include "../common/loads_first.h"
#include "operator.h"

constexpr int kScales = 512 / 16;  // vector of a row with its scales

__global__ void gather_rows(Gather gather) {
  const int64_t row = warp_index();
  const int lane = lane_index();
  if (row >= gather.rows) {
    return;
  }
  const int2 pair = gather.pairs[row];
  const int4* src = source_vectors(gather, pair.x);
  int4* dst = destination_vectors(gather, pair.y);
  constexpr int kTurns = kWarpTurns<kRowVectors>;
  int4 held[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane;
    if (i < kRowVectors) {
      held[turn] = i == kScales ? gather.scales[pair.x] : __ldcs(src + i - (i > kScales));
    }
  }
  store_vectors<Streaming>(dst, held, lane, kWarp, kRowVectors);
}

Prepared prepare(const std::vector<Gather>&, const std::vector<int>&) {
  return {[](const Gather& gather, cudaStream_t stream) {
    gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
  }};
}
