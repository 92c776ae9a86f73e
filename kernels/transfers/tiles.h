// Pieces cut into tiles, the units that warps or blocks of a copy by the SMs take in turn.
#pragma once

#include <algorithm>

#include "transfer.h"

// Pieces i, at from + i * from_pitch and to + i * to_pitch, in B. It owns nothing.
struct Tiles {
  uint8_t* from;
  uint8_t* to;
  int64_t from_pitch;
  int64_t to_pitch;
  int64_t size;       // of a piece
  int64_t tile;       // bytes of a whole tile; a piece's last may be shorter
  int64_t per_piece;  // tiles
  int64_t count;      // of all tiles
};

// The pieces cut into tiles of `tile` bytes.
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

// Whether every piece begins and ends on a 16-byte boundary on both sides.
inline bool has_whole_vectors(const Pieces& pieces) {
  const auto host = reinterpret_cast<uintptr_t>(pieces.host);
  const auto device = reinterpret_cast<uintptr_t>(pieces.device);
  return (host | device | static_cast<uintptr_t>(pieces.size | pieces.pitch)) % 16 == 0;
}

// Blocks to launch: as many as are asked for, else as many as have something to do, up to `most`.
inline int blocks_for(const Pieces& pieces, int64_t useful, int64_t most) {
  return static_cast<int>(pieces.blocks > 0 ? pieces.blocks : std::min(useful, most));
}
