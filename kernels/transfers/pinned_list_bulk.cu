// Bulk copies (TMA) of a list's pieces: one thread per block keeps several tiles in flight through
// shared memory.
#include <algorithm>
#include <cuda/ptx>

#include "../common/moves/transfer.h"

constexpr int64_t kTileBytes = 8192;
constexpr int kStages = 8;
constexpr int64_t kMaxBlocks = 264;

namespace ptx = cuda::ptx;

struct List {
  const Place* places;
  uint8_t* host;
  uint8_t* device;
  int64_t size;
  int64_t per_piece;
  int64_t tiles;
  bool to_device;
};

struct Tile {
  uint8_t* from;
  uint8_t* to;
  uint32_t bytes;
};

__device__ Tile tile_of(const List& list, int64_t t) {
  const Place place = list.places[t / list.per_piece];
  const int64_t offset = t % list.per_piece * kTileBytes;
  uint8_t* on_host = list.host + place.host + offset;
  uint8_t* on_device = list.device + place.device + offset;
  const auto bytes = static_cast<uint32_t>(min(kTileBytes, list.size - offset));
  return {list.to_device ? on_host : on_device, list.to_device ? on_device : on_host, bytes};
}

__device__ void load(const Tile& tile, uint8_t* stage, uint64_t* full) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                 tile.bytes);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage, tile.from, tile.bytes, full);
}

// One thread per block. A bulk copy fills a stage and another empties it.
__global__ void copy_list(List list) {
  extern __shared__ __align__(128) uint8_t stages[];
  __shared__ uint64_t full[kStages];
  Tile held[kStages];
  for (uint64_t& barrier : full) {
    ptx::mbarrier_init(&barrier, 1);
  }
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  ptx::fence_proxy_async();
  const int64_t mine = (list.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const auto tile_at = [&](int64_t k) { return tile_of(list, blockIdx.x + k * gridDim.x); };
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    if (s < mine) {
      held[s] = tile_at(s);
      load(held[s], stages + s * kTileBytes, &full[s]);
    }
  }
  for (int64_t round = 0; round * kStages < mine; ++round) {
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      const int64_t k = round * kStages + s;
      if (k >= mine) {
        break;
      }
      uint8_t* stage = stages + s * kTileBytes;
      const bool goes_on = k + kStages < mine;
      const Tile next = goes_on ? tile_at(k + kStages) : held[s];
      while (!ptx::mbarrier_try_wait_parity(&full[s], static_cast<uint32_t>(round % 2))) {
      }
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, held[s].to, stage, held[s].bytes);
      ptx::cp_async_bulk_commit_group();
      if (goes_on) {
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        load(next, stage, &full[s]);
        held[s] = next;
      }
    }
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

class ListBulk : public Method {
 public:
  explicit ListBulk(const Pieces& moved) : Method(moved) {
    pieces.require_places();
    pieces.require_vectors();
    check(cudaFuncSetAttribute(copy_list, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kStages * kTileBytes),
          "cudaFuncSetAttribute");
  }

  void launch(cudaStream_t stream) override {
    const int64_t per_piece = (pieces.size + kTileBytes - 1) / kTileBytes;
    const int64_t tiles = per_piece * pieces.count;
    const int64_t wanted = pieces.blocks > 0 ? pieces.blocks : kMaxBlocks;
    const List list{pieces.places, pieces.host, pieces.device,   pieces.size,
                    per_piece,     tiles,       pieces.to_device};
    copy_list<<<static_cast<int>(std::min(wanted, tiles)), 1, kStages * kTileBytes, stream>>>(list);
    check(cudaGetLastError(), "copy_list");
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<ListBulk>(pieces); }
