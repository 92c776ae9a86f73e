// The operation of this study: a gather of rows into the memory of the first GPU, of each GPU, or
// of the host. bindings.cpp checks its arguments before it prepares a variant.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/memory.h"
#include "../common/rows.h"

constexpr int kVector = 16;  // bytes per load or store of a lane
constexpr int kMaxRowBytes = 4096;

// Roles of the GPUs in a variant. `first` is the GPU that the rows are for, `peer` the second one.
struct Plan {
  const char* rows_in;     // memory of the rows: first, peer, host, or each (of the moving GPU)
  const char* moved_by;    // first, peer, or all (GPUs in use, each a share)
  const char* written_to;  // first, host, or each (of the moving GPU)
  const char* how;         // gather; copy, of consecutive rows; or all_reduce, without shares
  const char* beside;      // what runs meanwhile: the peer, as a neighbour, reads as many rows from
                           // the host (gather, copy) or from the first GPU (pull), or all GPUs
                           // reduce (all_reduce); or none
};

// Each variant defines it.
extern const Plan kPlan;

// One GPU's share of a launch: row pairs[i].x of pool goes to row pairs[i].y of dst. The memory
// belongs to the caller and outlives the launch.
struct Share {
  int gpu;              // moves the rows; index among the GPUs in use
  const uint8_t* pool;  // memory of any GPU, or pinned host memory
  int64_t pool_rows;
  uint8_t* dst;         // memory of any GPU, or pinned host memory
  const int2* pairs;    // memory of `gpu`, [rows] of (source row, destination row)
  int64_t rows;         // the same in all launches
  int64_t launch_rows;  // of all shares, whose pairs are consecutive in memory of each GPU
  int64_t source;       // pairs[0].x, for copies
  int64_t destination;  // pairs[0].y, and the number of the launch's pairs before pairs[0]
  int row_bytes;        // a multiple of kVector, at most kMaxRowBytes
  bool is_neighbour;    // runs beside the launch, which does not wait for it
};

// Rows [begin, end) of a share.
inline Share rows_of(Share share, int64_t begin, int64_t end) {
  share.pairs += begin;
  share.rows = end - begin;
  share.source += begin;
  share.destination += begin;
  return share;
}

// All rows of the share's launch, as one share. Its source is not known.
inline Share whole(Share share) {
  share.pairs -= share.destination;
  share.rows = share.launch_rows;
  share.destination = 0;
  return share;
}

// Enqueues a share on a stream of its GPU, which is the current one.
using Move = std::function<void(const Share& share, cudaStream_t stream)>;

// The boundary in `total` rows that corresponds to `row` of the share's launch.
inline int64_t boundary_in(int64_t total, const Share& share, int64_t row) {
  return total * row / share.launch_rows;
}

// Resources of a variant beside the GPU of a share.
struct Resources {
  int gpus;               // in use
  std::vector<int> cpus;  // for pinned threads, in this order; the first is the caller's
};

// Prepares the moves of shares like this one, whose GPU is the current one. Each variant defines
// it. Throws std::runtime_error if its scratch memory does not fit. The caller must check
// cudaGetLastError for launches that CUDA refuses.
Move prepare(const Share& share, const Resources& resources);

// Addresses of a row on either side.
HOST_DEVICE inline const uint8_t* source_bytes(const Share& share, int64_t row) {
  return share.pool + row * share.row_bytes;
}

HOST_DEVICE inline uint8_t* destination_bytes(const Share& share, int64_t row) {
  return share.dst + row * share.row_bytes;
}
