// The SMs gather a share of the rows, in order where that pays; at the same time the CPU packs the
// others.
#include <algorithm>
#include <memory>

#include "operator.h"
#include "sharing.h"
#include "sort_bits.h"
#include "sorter.h"

// What the copy engine asks for seems to wait behind all that the SMs have in flight, so they keep
// only as much in flight as the link needs.
#ifndef BLOCKS_PER_SM  // a flag in study.yaml
#define BLOCKS_PER_SM 2
#endif

__global__ void gather_rows(Gather gather) {
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  for (int64_t row = warp; row < gather.rows; row += warps) {
    const int source = gather.pairs[row].x;
    if (row > 0 && gather.pairs[row - 1].x == source) {
      continue;
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
}

// Order pays where the rows lie in more pages than the GPU holds, or where enough of them are drawn
// again: of a quarter of the pool's rows, drawn at random, one in eight. Else it takes longer than
// it saves.
static bool order_pays(int64_t rows, int64_t pool_rows) {
  return std::min(rows * kPageBytes, pool_rows * kSlotBytes) > kHeldBytes || rows > pool_rows / 4;
}

static int sm_count() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "SMs");
  return count;
}

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus) {
  const int64_t pool_rows = sets.front().pool_rows;
  const int most_blocks = BLOCKS_PER_SM * sm_count();
  const auto on_sms = [pool_rows, most_blocks](int64_t rows) -> Launch {
    const Bits bits = order_pays(rows, pool_rows) ? all_bits(pool_rows) : Bits{0, 0};
    const auto sorter = std::make_shared<Sorter>(rows, bits);
    const int blocks = std::min(blocks_for(rows * kWarp), most_blocks);
    return [sorter, blocks](Gather gather, cudaStream_t stream) {
      gather.pairs = sorter->sorted(gather.pairs, stream);
      gather_rows<<<blocks, kBlock, 0, stream>>>(gather);
    };
  };
  const auto sharing = std::make_shared<Sharing>(sets.front().rows, cpus, on_sms);
  sharing->tune(sets);
  return {[sharing](const Gather& gather, cudaStream_t stream) { sharing->launch(gather, stream); },
          [sharing](const Gather& gather) { sharing->flush(gather); }};
}
