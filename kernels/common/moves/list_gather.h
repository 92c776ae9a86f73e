// One kernel copies all pieces of a list: each warp moves tiles, all loads before the first store.
#pragma once

#include <algorithm>

#include "../loads_first.h"
#include "transfer.h"

constexpr int kTurns = 8;

// `Vector` is the unit that a lane copies: 16 bytes, or one byte for pieces that are not aligned.
template <typename Vector>
constexpr int64_t kTileBytes = kTurns * kWarp * static_cast<int64_t>(sizeof(Vector));

#ifdef __CUDACC__
// Moves `count` pieces between host and device, `per_piece` tiles each. The place of a warp's next
// tile is read from the list in host memory while the current tile is in flight.
template <typename Vector>
__global__ void copy_places(const Place* places, uint8_t* host, uint8_t* device, int64_t size,
                            int64_t per_piece, int64_t count, bool to_device) {
  const int64_t tiles = per_piece * count;
  const int64_t warps = warp_count();
  const int lane = lane_index();
  int64_t t = warp_index();
  if (t >= tiles) {
    return;
  }
  Place place = places[t / per_piece];
  while (true) {
    const int64_t next = t + warps;
    const Place next_place = next < tiles ? places[next / per_piece] : place;
    const int64_t offset = t % per_piece * kTileBytes<Vector>;
    const int64_t bytes = min(kTileBytes<Vector>, size - offset);
    uint8_t* on_host = host + place.host + offset;
    uint8_t* on_device = device + place.device + offset;
    const auto* from = reinterpret_cast<const Vector*>(to_device ? on_host : on_device);
    auto* to = reinterpret_cast<Vector*>(to_device ? on_device : on_host);
    copy_loads_first<Cached, kTurns>(to, from, lane, kWarp,
                                     bytes / static_cast<int64_t>(sizeof(Vector)));
    if (next >= tiles) {
      return;
    }
    t = next;
    place = next_place;
  }
}

class ListGather : public Method {
 public:
  ListGather(const Pieces& moved, int64_t max_blocks)
      : Method(moved), max_blocks_(max_blocks), has_vectors_(pieces.has_vectors()) {
    pieces.require_places();
  }

  void launch(cudaStream_t stream) override {
    if (has_vectors_) {
      copy<int4>(stream);
    } else {
      copy<uint8_t>(stream);
    }
  }

 private:
  template <typename Vector>
  void copy(cudaStream_t stream) const {
    const int64_t per_piece = (pieces.size + kTileBytes<Vector> - 1) / kTileBytes<Vector>;
    const int64_t useful = blocks_for(per_piece * pieces.count * kWarp);
    const int blocks =
        pieces.blocks > 0 ? pieces.blocks : static_cast<int>(std::min(useful, max_blocks_));
    copy_places<Vector><<<blocks, kBlock, 0, stream>>>(pieces.places, pieces.host, pieces.device,
                                                       pieces.size, per_piece, pieces.count,
                                                       pieces.to_device);
    check(cudaGetLastError(), "copy_places");
  }

  const int64_t max_blocks_;
  const bool has_vectors_;
};
#endif
