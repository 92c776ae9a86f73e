// The SMs gather a share of the rows, sorted where that pays, while the CPU packs the other rows.
#include <algorithm>
#include <memory>

#include "../common/sm_count.h"
#include "../common/sorter.h"
#include "fetch_once.h"
#include "operator.h"
#include "sharing.h"
#include "sort_bits.h"

// Copy-engine reads appear to queue behind outstanding SM reads, so the SMs keep only as many in
// flight as the link needs.
#ifndef BLOCKS_PER_SM  // a flag in study.yaml
#define BLOCKS_PER_SM 2
#endif

__global__ void gather_rows(Gather gather) {
  for (int64_t row = warp_index(); row < gather.rows; row += warp_count()) {
    fetch_once(gather, row);
  }
}

// Sorting pays if the rows lie in more pages than the GPU holds translations of, or if enough rows
// repeat: of a quarter of the pool's rows, drawn at random, one in eight does.
static bool sorting_pays(int64_t rows, int64_t pool_rows) {
  return std::min(rows * kPageBytes, pool_rows * kSlotBytes) > kHeldBytes || rows > pool_rows / 4;
}

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus) {
  const int64_t pool_rows = sets.front().pool_rows;
  const int max_blocks = BLOCKS_PER_SM * sm_count();
  const auto make_sm_gather = [pool_rows, max_blocks](int64_t rows) -> Launch {
    const Bits bits = sorting_pays(rows, pool_rows) ? all_bits(pool_rows) : Bits{0, 0};
    const auto sorter = std::make_shared<Sorter>(rows, bits);
    const int blocks = std::min(blocks_for(rows * kWarp), max_blocks);
    return [sorter, blocks](Gather gather, cudaStream_t stream) {
      gather.pairs = sorter->sorted(gather.pairs, stream);
      gather_rows<<<blocks, kBlock, 0, stream>>>(gather);
    };
  };
  const auto sharing = std::make_shared<Sharing>(sets.front().rows, cpus, make_sm_gather);
  sharing->tune(sets);
  return {[sharing](const Gather& gather, cudaStream_t stream) { sharing->launch(gather, stream); },
          [sharing](const Gather& gather) { sharing->flush(gather); }};
}
