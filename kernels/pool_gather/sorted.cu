// The rows are sorted first, as far as that helps: rows in flight then lie in few pages.
#include <memory>

#include "../common/sorter.h"
#include "../common/warp_per_row.h"
#include "operator.h"
#include "sort_bits.h"

__global__ void gather_rows(Gather gather) { copy_row_of_warp<Streaming, kRowVectors>(gather); }

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>&) {
  const Gather& any = sets.front();
  const auto sorter = std::make_shared<Sorter>(any.rows, sort_bits(any.rows, any.pool_rows));
  return {[sorter](Gather gather, cudaStream_t stream) {
    gather.pairs = sorter->sorted(gather.pairs, stream);
    gather_rows<<<blocks_for(gather.rows * kWarp), kBlock, 0, stream>>>(gather);
  }};
}
