// The operator every variant of this study implements. workload.py binds and launches it through
// bindings.cpp, which has checked shapes, kinds of memory and rows by then.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/launch.h"
#include "../common/rows.h"

// Bytes of one row, their number of 16-byte vectors, and the distance of two rows in host memory;
// study.yaml sets the macros.
constexpr int kRowBytes = TOKEN_BYTES;
constexpr int kRowVectors = kRowBytes / 16;
constexpr int kSlotBytes = SLOT_BYTES;
static_assert(kRowBytes % 16 == 0, "token_bytes must be a multiple of 16");
static_assert(kSlotBytes % 16 == 0 && kSlotBytes >= kRowBytes, "slot_bytes must hold a row");

// One gather: for i in [0, rows), row pairs[i].x of src goes to row pairs[i].y of dst. It owns
// nothing; what it points to stays until the gather is done.
struct Gather {
  const uint8_t* src;  // pinned host memory, mapped into the device's address space
  uint8_t* dst;        // device memory
  const int2* pairs;   // device memory, [rows] of (source row, destination row)
  int64_t rows;
  uint32_t* sm_launches;  // device memory, [SMs], or null: blocks that started on each SM
};

// Enqueues the gather on `stream` and waits for nothing. Each variant defines it. A launch that
// CUDA refuses is left to cudaGetLastError, which the caller asks.
void launch(const Gather& gather, cudaStream_t stream);

// Where a row of either side begins.
HOST_DEVICE inline const uint8_t* source_bytes(const Gather& gather, int64_t row) {
  return gather.src + row * kSlotBytes;
}

HOST_DEVICE inline uint8_t* destination_bytes(const Gather& gather, int64_t row) {
  return gather.dst + row * kRowBytes;
}

#ifdef __CUDACC__
// The calling thread among those of the grid.
__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Counts this block in the entry of its SM, if the launches are counted.
__device__ inline void count_sm(const Gather& gather) {
  if (gather.sm_launches != nullptr) {
    count_sm(gather.sm_launches);
  }
}
#endif
