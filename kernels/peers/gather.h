// Rows moved by multiprocessors.
#pragma once

#include "operation.h"

constexpr int kWarp = 32;
constexpr int kBlock = 256;  // threads of a block

__device__ inline const int4* source_vectors(const Share& share, int2 pair) {
  return reinterpret_cast<const int4*>(share.pool + int64_t{pair.x} * share.row_bytes);
}

__device__ inline int4* destination_vectors(const Share& share, int2 pair) {
  return reinterpret_cast<int4*>(share.dst + int64_t{pair.y} * share.row_bytes);
}

// Which pairs of a share are moved: all of them.
struct Every {
  __device__ bool operator()(int2) const { return true; }
};

// A group of lanes owns a row: as many as it has vectors, at most a warp. Each of them has all of
// its loads in flight before its first store.
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
  const int4* src = source_vectors(share, pair);
  int4* dst = destination_vectors(share, pair);
  const int vectors = share.row_bytes / kVector;
  int4 held[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kLanes + lane;
    if (i < vectors) {
      held[turn] = src[i];
    }
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int i = turn * kLanes + lane;
    if (i < vectors) {
      dst[i] = held[turn];
    }
  }
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
