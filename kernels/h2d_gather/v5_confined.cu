// Persistent warps in 16 blocks, so on 16 SMs at most; each warp has four rows in flight.
#include <algorithm>

#include "../common/rows_in_flight.h"
#include "operator.h"

constexpr int kBlocks = 16;
constexpr int kRowsInFlight = 4;

__global__ void gather_rows(Gather gather) {
  count_sm(gather);
  copy_rows_in_flight<kRowsInFlight, kRowVectors>(gather);
}

void launch(const Gather& gather, cudaStream_t stream) {
  const int blocks = std::min(blocks_for(gather.rows * kWarp), kBlocks);
  gather_rows<<<blocks, kBlock, 0, stream>>>(gather);
}
