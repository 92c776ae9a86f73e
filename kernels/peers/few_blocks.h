// Persistent warps in few blocks, thus on few SMs; each warp has four rows in flight.
#pragma once

#include "gather.h"

constexpr int kThreads = 512;
constexpr int kRowsInFlight = 4;
constexpr int kTurns = 2;  // for rows of at most 1 KiB

__global__ void __launch_bounds__(kThreads) gather_rows_in_flight(Share share) {
  const int warp = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarp);
  const int warps = static_cast<int>(gridDim.x * blockDim.x / kWarp);
  const int lane = threadIdx.x % kWarp;
  const int vectors = share.row_bytes / kVector;
  for (int64_t first = warp; first < share.rows; first += int64_t{warps} * kRowsInFlight) {
    int4 held[kRowsInFlight][kTurns];
    int2 pairs[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      const int64_t row = first + int64_t{r} * warps;
      if (row < share.rows) {
        pairs[r] = share.pairs[row];
        load_vectors<Cached>(held[r], source_vectors(share, pairs[r].x), lane, kWarp, vectors);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
      if (first + int64_t{r} * warps < share.rows) {
        int4* dst = destination_vectors(share, pairs[r].y);
        store_vectors<Cached>(dst, held[r], lane, kWarp, vectors);
      }
    }
  }
}

inline Move gather_in_few_blocks(const Share& share) {
  if (share.row_bytes > kTurns * kWarp * kVector) {
    throw std::runtime_error("row_bytes: expected at most 1024, got " +
                             std::to_string(share.row_bytes));
  }
  return [](const Share& of, cudaStream_t stream) {
    gather_rows_in_flight<<<BLOCKS, kThreads, 0, stream>>>(of);
  };
}
