// One kernel: each warp copies a tile of a piece, with all loads before the first store.
#include "../common/loads_first.h"
#include "tiles.h"

const Memory kMemory = Memory::kPinned;

constexpr int kTurns = 8;
constexpr int64_t kMaxBlocks = 1024;

// `Vector` is the unit that a lane copies: 16 bytes, or one byte for pieces that are not aligned.
template <typename Vector>
constexpr int64_t kTileBytes = kTurns * kWarp * static_cast<int64_t>(sizeof(Vector));

template <typename Vector>
__global__ void copy_tiles(Tiles tiles) {
  const int64_t first = warp_index();
  const int64_t warps = warp_count();
  const int lane = lane_index();
  for (int64_t t = first; t < tiles.count; t += warps) {
    const int64_t piece = t / tiles.per_piece;
    const int64_t offset = t % tiles.per_piece * tiles.tile;
    const int64_t bytes = min(tiles.tile, tiles.size - offset);
    const auto* from =
        reinterpret_cast<const Vector*>(tiles.from + piece * tiles.from_pitch + offset);
    auto* to = reinterpret_cast<Vector*>(tiles.to + piece * tiles.to_pitch + offset);
    const int64_t vectors = bytes / static_cast<int64_t>(sizeof(Vector));
    Vector held[kTurns];
    load_vectors<Cached>(held, from, lane, kWarp, vectors);
    store_vectors<Cached>(to, held, lane, kWarp, vectors);
  }
}

class Gather : public Method {
 public:
  using Method::Method;

  void launch(cudaStream_t stream) override {
    if (has_whole_vectors(pieces)) {
      copy<int4>(stream);
    } else {
      copy<uint8_t>(stream);
    }
  }

 private:
  template <typename Vector>
  void copy(cudaStream_t stream) const {
    const Tiles tiles = tiles_of(pieces, kTileBytes<Vector>);
    const int64_t useful = (tiles.count * kWarp + kBlock - 1) / kBlock;
    copy_tiles<Vector><<<blocks_for(pieces, useful, kMaxBlocks), kBlock, 0, stream>>>(tiles);
    check(cudaGetLastError(), "copy_tiles");
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Gather>(pieces); }
