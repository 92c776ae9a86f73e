// A warp owns a row: every lane has all its loads in flight before its first store.
#include "../common/warp_per_row.h"
#include "operator.h"

__global__ void gather_rows(Gather gather) { copy_row_of_warp<Cached, kRowVectors>(gather); }

Prepared prepare(const std::vector<Gather>&, const std::vector<int>&) {
  return {[](const Gather& gather, cudaStream_t stream) {
    gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
  }};
}
