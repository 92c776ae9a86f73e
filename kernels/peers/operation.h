// The operation of this study: rows are gathered into the memory of the first GPU, or of each GPU,
// or of the host. bindings.cpp has checked what it can before it prepares a variant.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../pool_gather/scratch.h"

constexpr int kVector = 16;  // bytes that a lane moves at once
constexpr int kMaxRowBytes = 4096;

// Who does what. `first` is the GPU that the rows are for, `peer` the second one.
struct Plan {
  const char* rows_in;     // where the rows lie: first, peer, host, or each (the mover's memory)
  const char* moved_by;    // first, peer, or all (of the GPUs in use, each a share)
  const char* written_to;  // first, host, or each (the mover's memory)
  const char* how;     // gather; copy, whose rows are consecutive; or all_reduce, without shares
  const char* beside;  // what goes on meanwhile: a neighbour, the peer, brings as many rows into
                       // its own memory from the host (gather, copy) or from the first GPU
                       // (pull), or all GPUs add up what they have (all_reduce); or none
};

// Each variant defines it.
extern const Plan kPlan;

// One GPU's share of a launch: row pairs[i].x of pool goes to row pairs[i].y of dst. It owns
// nothing; what it points to stays until the launch is done.
struct Share {
  int gpu;              // that moves the rows, by its place among those in use
  const uint8_t* pool;  // memory of any of them, or page-locked host memory
  int64_t pool_rows;
  uint8_t* dst;         // memory of any of them, or page-locked host memory
  const int2* pairs;    // memory of `gpu`, [rows] of (source row, destination row)
  int64_t rows;         // the same in all launches
  int64_t launch_rows;  // of all shares; their pairs follow each other, in memory of each GPU
  int64_t source;       // pairs[0].x and
  int64_t destination;  // pairs[0].y, for copies; so many pairs of the launch come before pairs[0]
  int row_bytes;        // a multiple of kVector, at most kMaxRowBytes
  bool is_neighbour;    // runs beside the launch, which does not wait for it
};

// The rows [begin, end) of a share.
inline Share stretch(Share share, int64_t begin, int64_t end) {
  share.pairs += begin;
  share.rows = end - begin;
  share.source += begin;
  share.destination += begin;
  return share;
}

// All rows of the launch that a share is of, as one share. Its source is not known.
inline Share whole(Share share) {
  share.pairs -= share.destination;
  share.rows = share.launch_rows;
  share.destination = 0;
  return share;
}

// Enqueues a share on a stream of its GPU, which is the current one.
using Move = std::function<void(const Share& share, cudaStream_t stream)>;

// Where a share that begins or ends at `row` of its launch does so if `total` is divided like that.
inline int64_t share_of(int64_t total, const Share& share, int64_t row) {
  return total * row / share.launch_rows;
}

// What a variant may use beside the GPU of a share.
struct Resources {
  int gpus;               // in use
  std::vector<int> cpus;  // that threads may be pinned to, in this order; the first is the caller's
};

// What moves a share like this one, in every launch; its GPU is the current one. Each variant
// defines it. Throws std::runtime_error where there is no room for its scratch. A launch that CUDA
// refuses is left to cudaGetLastError, which the caller asks.
Move prepare(const Share& share, const Resources& resources);
