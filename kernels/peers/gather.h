// Gathers by the SMs.
#pragma once

#include "../common/loads_first.h"
#include "operation.h"

// Picks all pairs of a share.
struct Every {
  __device__ bool operator()(int2) const { return true; }
};

// A group of kLanes lanes, at most a warp, owns a row. Each lane has all its loads in flight before
// its first store.
template <int kLanes, int kTurns, class Picked>
__global__ void gather_rows(Share share, Picked is_picked) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  if (row >= share.rows) {
    return;
  }
  const int2 pair = share.pairs[row];
  if (!is_picked(pair)) {
    return;
  }
  const int4* src = source_vectors(share, pair.x);
  int4* dst = destination_vectors(share, pair.y);
  const int vectors = share.row_bytes / kVector;
  int4 held[kTurns];
  load_vectors<Cached>(held, src, lane, kLanes, vectors);
  store_vectors<Cached>(dst, held, lane, kLanes, vectors);
}

template <int kLanes, int kTurns = 1, class Picked>
void gather_by(const Share& share, Picked is_picked, cudaStream_t stream) {
  constexpr int kRows = kBlock / kLanes;  // of a block
  const auto blocks = static_cast<unsigned>((share.rows + kRows - 1) / kRows);
  gather_rows<kLanes, kTurns><<<blocks, kBlock, 0, stream>>>(share, is_picked);
}

template <class Picked>
void gather_picked(const Share& share, Picked is_picked, cudaStream_t stream) {
  const int vectors = share.row_bytes / kVector;
  if (vectors <= 1) {
    gather_by<1>(share, is_picked, stream);
  } else if (vectors <= 2) {
    gather_by<2>(share, is_picked, stream);
  } else if (vectors <= 4) {
    gather_by<4>(share, is_picked, stream);
  } else if (vectors <= 8) {
    gather_by<8>(share, is_picked, stream);
  } else if (vectors <= 16) {
    gather_by<16>(share, is_picked, stream);
  } else if (vectors <= kWarp) {
    gather_by<kWarp>(share, is_picked, stream);
  } else if (vectors <= 2 * kWarp) {
    gather_by<kWarp, 2>(share, is_picked, stream);
  } else {
    gather_by<kWarp, kMaxRowBytes / kVector / kWarp>(share, is_picked, stream);
  }
}

inline void gather(const Share& share, cudaStream_t stream) {
  gather_picked(share, Every{}, stream);
}
