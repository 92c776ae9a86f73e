// A warp copies a group of rows: it loads all of them, 512 bytes per instruction, then stores them.
#include "../common/loads_first.h"
#include "operation.h"

template <int kTurns, int kInFlight>
__global__ void copy_rows(Rows rows) {
  const int64_t warp = warp_index();
  const int64_t warps = warp_count();
  const int lane = lane_index();
  for (int64_t first = warp; first < rows.rows; first += warps * kInFlight) {
    int4 held[kInFlight][kTurns];
#pragma unroll
    for (int r = 0; r < kInFlight; ++r) {
      const int64_t row = first + r * warps;
      if (row < rows.rows) {
        const int4* src = rows.src + rows.starts[row];
        load_vectors<Cached>(held[r], src, lane, kWarp, rows.row_vectors);
      }
    }
#pragma unroll
    for (int r = 0; r < kInFlight; ++r) {
      const int64_t row = first + r * warps;
      if (row < rows.rows) {
        int4* dst = rows.dst + row * rows.row_vectors;
        store_vectors<Cached>(dst, held[r], lane, kWarp, rows.row_vectors);
      }
    }
  }
}

template <int kTurns>
cudaError_t launch_turns(const Rows& rows, cudaStream_t stream) {
  const int64_t warps = (rows.rows + rows.in_flight - 1) / rows.in_flight;
  const int all = static_cast<int>((warps * kWarp + kBlock - 1) / kBlock);
  const int blocks = rows.blocks > 0 ? rows.blocks : all;
  switch (rows.in_flight) {
    case 1:
      copy_rows<kTurns, 1><<<blocks, kBlock, 0, stream>>>(rows);
      break;
    case 2:
      copy_rows<kTurns, 2><<<blocks, kBlock, 0, stream>>>(rows);
      break;
    case 4:
      copy_rows<kTurns, 4><<<blocks, kBlock, 0, stream>>>(rows);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

cudaError_t launch(const Rows& rows, cudaStream_t stream) {
  switch ((rows.row_vectors + kWarp - 1) / kWarp) {
    case 1:
      return launch_turns<1>(rows, stream);
    case 2:
      return launch_turns<2>(rows, stream);
    case 3:
      return launch_turns<3>(rows, stream);
    case 4:
      return launch_turns<4>(rows, stream);
    default:
      return cudaErrorInvalidValue;
  }
}
