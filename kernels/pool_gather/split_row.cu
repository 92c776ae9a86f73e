// A slot of the pool is whole 128-byte lines: the row without its 16 bytes of scales. These come
// from a table in device memory.
#include "operator.h"

constexpr int kScales = 512 / 16;  // the vector of a row that holds its scales

__global__ void gather_rows(Gather gather) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= gather.rows) {
    return;
  }
  const int2 pair = gather.pairs[row];
  const int4* src = source_vectors(gather, pair.x);
  int4* dst = destination_vectors(gather, pair.y);
  constexpr int kTurns = (kRowVectors + kWarp - 1) / kWarp;
  int4 held[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane;
    if (i < kRowVectors) {
      held[turn] = i == kScales ? gather.scales[pair.x] : __ldcs(src + i - (i > kScales));
    }
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kWarp + lane;
    if (i < kRowVectors) {
      __stcs(dst + i, held[turn]);
    }
  }
}

Prepared prepare(const std::vector<Gather>&, const std::vector<int>&) {
  return {[](const Gather& gather, cudaStream_t stream) {
    gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
  }};
}
