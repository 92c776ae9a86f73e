// In full order, the pairs of one row are neighbours: the first one's warp reads it for all of
// them.
#include <memory>

#include "operator.h"
#include "sort_bits.h"
#include "sorter.h"

__global__ void gather_rows(Gather gather) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= gather.rows) {
    return;
  }
  const int source = gather.pairs[row].x;
  if (row > 0 && gather.pairs[row - 1].x == source) {
    return;
  }
  const int4* src = source_vectors(gather, source);
  constexpr int kTurns = (kRowVectors + kWarp - 1) / kWarp;
  int4 held[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane;
    if (i < kRowVectors) {
      held[turn] = __ldcs(src + i);
    }
  }
  for (int64_t same = row; same < gather.rows && gather.pairs[same].x == source; ++same) {
    int4* dst = destination_vectors(gather, gather.pairs[same].y);
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kWarp + lane;
      if (i < kRowVectors) {
        __stcs(dst + i, held[turn]);
      }
    }
  }
}

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>&) {
  const Gather& any = sets.front();
  const auto sorter = std::make_shared<Sorter>(any.rows, all_bits(any.pool_rows));
  return {[sorter](Gather gather, cudaStream_t stream) {
    gather.pairs = sorter->sorted(gather.pairs, stream);
    gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
  }};
}
