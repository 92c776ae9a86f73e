// Persistent warps in 8 blocks, so on 8 SMs at most; each warp has four rows in flight.
#include "operator.h"

constexpr int kBlocks = 8;
constexpr int kThreads = 512;
constexpr int kRowsInFlight = 4;

__global__ void __launch_bounds__(kThreads) gather_rows(Gather gather) {
  count_sm(gather);
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  constexpr int kTurns = (kRowVectors + kWarp - 1) / kWarp;
  for (int64_t first = warp; first < gather.rows; first += warps * kRowsInFlight) {
    int4 held[kRowsInFlight][kTurns];
    int destination[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const int64_t row = first + r * warps;
      if (row < gather.rows) {
        const int2 pair = gather.pairs[row];
        const int4* src = source_vectors(gather, pair.x);
        destination[r] = pair.y;
#pragma unroll
        for (int turn = 0; turn < kTurns; ++turn) {
          const int i = turn * kWarp + lane;
          if (i < kRowVectors) {
            held[r][turn] = src[i];
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (first + r * warps < gather.rows) {
        int4* dst = destination_vectors(gather, destination[r]);
#pragma unroll
        for (int turn = 0; turn < kTurns; ++turn) {
          const int i = turn * kWarp + lane;
          if (i < kRowVectors) {
            dst[i] = held[r][turn];
          }
        }
      }
    }
  }
}

Prepared prepare(const std::vector<Gather>&, const std::vector<int>&) {
  return {[](const Gather& gather, cudaStream_t stream) {
    gather_rows<<<kBlocks, kThreads, 0, stream>>>(gather);
  }};
}
