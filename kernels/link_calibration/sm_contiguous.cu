// Adjacent threads copy adjacent vectors, each with four loads before its first store.
#include "../common/loads_first.h"
#include "operation.h"

constexpr int kTurns = 4;

__global__ void copy_contiguous(Rows rows) {
  const int64_t vectors = rows.rows * rows.row_vectors;
  const int64_t base = static_cast<int64_t>(blockIdx.x) * blockDim.x * kTurns + threadIdx.x;
  int4 held[kTurns];
  load_vectors<Cached>(held, rows.src, base, blockDim.x, vectors);
  store_vectors<Cached>(rows.dst, held, base, blockDim.x, vectors);
}

cudaError_t launch(const Rows& rows, cudaStream_t stream) {
  constexpr int kTile = kBlock * kTurns;
  const int64_t blocks = (rows.rows * rows.row_vectors + kTile - 1) / kTile;
  copy_contiguous<<<static_cast<int>(blocks), kBlock, 0, stream>>>(rows);
  return cudaGetLastError();
}
