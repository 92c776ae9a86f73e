// Fully sorted, the pairs of one row are neighbours: the first pair's warp reads the row for all.
#include <memory>

#include "../common/sorter.h"
#include "fetch_once.h"
#include "operator.h"
#include "sort_bits.h"

__global__ void gather_rows(Gather gather) {
  const int64_t row = warp_index();
  if (row < gather.rows) {
    fetch_once(gather, row);
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
