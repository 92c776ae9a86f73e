// Each warp copies one row: all loads of a lane are in flight before its first store.
#pragma once

#include "../common/loads_first.h"
#include "operation.h"

template <class Access, int kTurns>
__global__ void copy_rows(Walk walk) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const int lane = lane_index();
  if (row >= walk.reads) {
    return;
  }
  const int4* src = walk.pool + vector_of(walk, row);
  int4* dst = static_cast<int4*>(walk.dst) + static_cast<int64_t>(row) * walk.read_vectors;
  int4 held[kTurns];
  load_vectors<Access>(held, src, lane, kWarp, walk.read_vectors);
  store_vectors<Access>(dst, held, lane, kWarp, walk.read_vectors);
}

template <class Access>
cudaError_t launch_rows(const Walk& walk, cudaStream_t stream) {
  constexpr int kRows = kBlock / kWarp;
  const int blocks = (walk.reads + kRows - 1) / kRows;
  if (walk.read_vectors <= kWarp) {
    copy_rows<Access, 1><<<blocks, kBlock, 0, stream>>>(walk);
  } else if (walk.read_vectors <= 2 * kWarp) {
    copy_rows<Access, 2><<<blocks, kBlock, 0, stream>>>(walk);
  } else if (walk.read_vectors <= kMaxRowVectors) {
    copy_rows<Access, kMaxRowVectors / kWarp><<<blocks, kBlock, 0, stream>>>(walk);
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}
