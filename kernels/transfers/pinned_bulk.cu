// Bulk copies (TMA): one thread per block keeps several tiles in flight through shared memory.
#include <cuda/ptx>

#include "tiles.h"

const Memory kMemory = Memory::kPinned;

constexpr int64_t kTileBytes = 8192;
constexpr int kStages = 8;
constexpr int64_t kMaxBlocks = 264;

namespace ptx = cuda::ptx;

struct Place {
  uint8_t* from;
  uint8_t* to;
  uint32_t bytes;
};

__device__ Place place_of(const Tiles& tiles, int64_t t) {
  const int64_t piece = t / tiles.per_piece;
  const int64_t offset = t % tiles.per_piece * tiles.tile;
  return {tiles.from + piece * tiles.from_pitch + offset,
          tiles.to + piece * tiles.to_pitch + offset,
          static_cast<uint32_t>(min(tiles.tile, tiles.size - offset))};
}

__device__ void load(const Tiles& tiles, int64_t t, uint8_t* stage, uint64_t* full) {
  const Place place = place_of(tiles, t);
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                 place.bytes);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage, place.from, place.bytes, full);
}

// One thread per block. One bulk copy fills a stage and another empties it, so the thread waits for
// copies only.
__global__ void copy_tiles(Tiles tiles) {
  extern __shared__ __align__(128) uint8_t stages[];
  __shared__ uint64_t full[kStages];
  for (uint64_t& barrier : full) {
    ptx::mbarrier_init(&barrier, 1);
  }
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  ptx::fence_proxy_async();
  const int64_t mine = (tiles.count - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const auto tile_at = [&](int64_t k) { return blockIdx.x + k * gridDim.x; };
  for (int64_t k = 0; k < min(mine, static_cast<int64_t>(kStages)); ++k) {
    load(tiles, tile_at(k), stages + k * kTileBytes, &full[k]);
  }
  for (int64_t k = 0; k < mine; ++k) {
    const int at = static_cast<int>(k % kStages);
    uint8_t* stage = stages + at * kTileBytes;
    while (!ptx::mbarrier_try_wait_parity(&full[at], static_cast<uint32_t>(k / kStages % 2))) {
    }
    const Place place = place_of(tiles, tile_at(k));
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, place.to, stage, place.bytes);
    ptx::cp_async_bulk_commit_group();
    if (k + kStages < mine) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      load(tiles, tile_at(k + kStages), stage, &full[at]);
    }
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

class Bulk : public Method {
 public:
  explicit Bulk(const Pieces& moved) : Method(moved), tiles_(tiles_of(pieces, kTileBytes)) {
    if (!has_whole_vectors(pieces)) {
      throw std::invalid_argument("size: expected a multiple of 16 B for bulk copies, got " +
                                  std::to_string(pieces.size));
    }
    check(cudaFuncSetAttribute(copy_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kStages * kTileBytes),
          "cudaFuncSetAttribute");
  }

  void launch(cudaStream_t stream) override {
    const int blocks = static_cast<int>(
        std::min<int64_t>(blocks_for(pieces, tiles_.count, kMaxBlocks), tiles_.count));
    copy_tiles<<<blocks, 1, kStages * kTileBytes, stream>>>(tiles_);
    check(cudaGetLastError(), "copy_tiles");
  }

 private:
  const Tiles tiles_;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Bulk>(pieces); }
