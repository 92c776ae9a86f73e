// Persistent warps stride over the rows; the launch is bounded by the write-up's formula for 16
// SMs.
#include <algorithm>

#include "../common/check.h"
#include "../common/loads_first.h"
#include "operator.h"

__global__ void gather_rows(Gather gather) {
  count_sm(gather);
  const int64_t warp = warp_index();
  const int64_t warps = warp_count();
  const int lane = lane_index();
  for (int64_t row = warp; row < gather.rows; row += warps) {
    const auto [src, dst] = row_of_pair(gather, row);
    int4 held[kWarpTurns<kRowVectors>];
    load_vectors<Cached>(held, src, lane, kWarp, kRowVectors);
    store_vectors<Cached>(dst, held, lane, kWarp, kRowVectors);
  }
}

// Blocks that 16 SMs hold at once. The query takes longer than a launch, so it is made once.
static int resident_blocks() {
  constexpr int kSmLimit = 16;
  static const int blocks = [] {
    int blocks_per_sm = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, gather_rows, kBlock, 0),
          "occupancy");
    return kSmLimit * blocks_per_sm;
  }();
  return blocks;
}

void launch(const Gather& gather, cudaStream_t stream) {
  const int blocks = std::min(blocks_for(gather.rows * kWarp), resident_blocks());
  gather_rows<<<blocks, kBlock, 0, stream>>>(gather);
}
