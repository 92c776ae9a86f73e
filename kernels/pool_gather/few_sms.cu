// Persistent warps in 8 blocks, thus on at most 8 SMs; each warp has four rows in flight.
#include "../common/rows_in_flight.h"
#include "operator.h"

constexpr int kBlocks = 8;
constexpr int kThreads = 512;
constexpr int kRowsInFlight = 4;

__global__ void __launch_bounds__(kThreads) gather_rows(Gather gather) {
  count_sm(gather.sm_launches);
  copy_rows_in_flight<kRowsInFlight, kRowVectors>(gather);
}

Prepared prepare(const std::vector<Gather>&, const std::vector<int>&) {
  return {[](const Gather& gather, cudaStream_t stream) {
    gather_rows<<<kBlocks, kThreads, 0, stream>>>(gather);
  }};
}
