// The SMs gather a share of the rows, in order; at the same time the CPU packs the others.
#include <memory>

#include "operator.h"
#include "sharing.h"
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

Launch prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus) {
  const int64_t pool_rows = sets.front().pool_rows;
  const auto on_sms = [pool_rows](int64_t rows) -> Launch {
    // To sort few rows takes longer than it saves.
    const Bits bits = rows * kPageBytes > kHeldBytes ? all_bits(pool_rows) : Bits{0, 0};
    const auto sorter = std::make_shared<Sorter>(rows, bits);
    return [sorter](Gather gather, cudaStream_t stream) {
      gather.pairs = sorter->sorted(gather.pairs, stream);
      gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
    };
  };
  const auto sharing = std::make_shared<Sharing>(sets.front().rows, cpus, on_sms);
  sharing->tune(sets);
  return [sharing](const Gather& gather, cudaStream_t stream) { sharing->launch(gather, stream); };
}
