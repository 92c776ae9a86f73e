// Pieces divided into tiles, the units of work of warps or blocks in a copy by the SMs.
#pragma once

#include <algorithm>

#include "transfer.h"

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
inline Tiles tiles_of(const Pieces& pieces, int64_t tile) {
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

// Whether all pieces start and end on 16-byte boundaries on both sides.
inline bool has_whole_vectors(const Pieces& pieces) {
  const auto host = reinterpret_cast<uintptr_t>(pieces.host);
  const auto device = reinterpret_cast<uintptr_t>(pieces.device);
  return (host | device | static_cast<uintptr_t>(pieces.size | pieces.pitch)) % 16 == 0;
}

// Blocks to launch: those of the case, else `useful` ones, at most `max_blocks`.
inline int blocks_for(const Pieces& pieces, int64_t useful, int64_t max_blocks) {
  return static_cast<int>(pieces.blocks > 0 ? pieces.blocks : std::min(useful, max_blocks));
}
