// One kernel: each warp copies a tile of a piece, with all loads before the first store.
#include <algorithm>

#include "../common/loads_first.h"
#include "../common/moves/transfer.h"

constexpr int kTurns = 8;
constexpr int64_t kMaxBlocks = 1024;

// `Vector` is the unit that a lane copies: 16 bytes, or one byte for pieces that are not aligned.
template <typename Vector>
constexpr int64_t kTileBytes = kTurns * kWarp * static_cast<int64_t>(sizeof(Vector));

// Piece i is copied from `from + i * from_pitch` to `to + i * to_pitch`. All sizes are in bytes.
struct Tiles {
  uint8_t* from;
  uint8_t* to;
  int64_t from_pitch;
  int64_t to_pitch;
  int64_t size;       // of a piece
  int64_t tile;       // of a whole tile; the last one of a piece may be shorter
  int64_t per_piece;  // tiles
  int64_t count;      // of all tiles
};

// Divides the pieces into tiles of `tile` bytes.
Tiles tiles_of(const Pieces& pieces, int64_t tile) {
  const int64_t host = pieces.pitch;
  const int64_t device = pieces.size;
  const int64_t per_piece = (pieces.size + tile - 1) / tile;
  return {pieces.from(0),
          pieces.to(0),
          pieces.to_device ? host : device,
          pieces.to_device ? device : host,
          pieces.size,
          tile,
          per_piece,
          per_piece * pieces.count};
}

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
    if (pieces.has_vectors()) {
      copy<int4>(stream);
    } else {
      copy<uint8_t>(stream);
    }
  }

 private:
  template <typename Vector>
  void copy(cudaStream_t stream) const {
    const Tiles tiles = tiles_of(pieces, kTileBytes<Vector>);
    const auto blocks = std::min<int64_t>(blocks_for(tiles.count * kWarp), kMaxBlocks);
    copy_tiles<Vector><<<static_cast<int>(blocks), kBlock, 0, stream>>>(tiles);
    check(cudaGetLastError(), "copy_tiles");
  }
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Gather>(pieces); }
