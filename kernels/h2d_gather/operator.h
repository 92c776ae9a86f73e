// The operator every variant of this study implements. workload.py binds and launches it through
// bindings.cpp, which has checked shapes, kinds of memory and rows by then.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Bytes of one row, their number of 16-byte vectors, and the distance of two rows in host memory;
// study.yaml sets the macros.
constexpr int kRowBytes = TOKEN_BYTES;
constexpr int kRowVectors = kRowBytes / 16;
constexpr int kSlotBytes = SLOT_BYTES;
static_assert(kRowBytes % 16 == 0, "token_bytes must be a multiple of 16");
static_assert(kSlotBytes % 16 == 0 && kSlotBytes >= kRowBytes, "slot_bytes must hold a row");

constexpr int kWarp = 32;
constexpr int kBlock = 256;  // threads of a block, in every variant

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

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

// Where a row of either side begins, as bytes or as 16-byte vectors.
HOST_DEVICE inline const uint8_t* source_bytes(const Gather& gather, int row) {
  return gather.src + static_cast<int64_t>(row) * kSlotBytes;
}

HOST_DEVICE inline uint8_t* destination_bytes(const Gather& gather, int row) {
  return gather.dst + static_cast<int64_t>(row) * kRowBytes;
}

HOST_DEVICE inline const int4* source_vectors(const Gather& gather, int row) {
  return reinterpret_cast<const int4*>(source_bytes(gather, row));
}

HOST_DEVICE inline int4* destination_vectors(const Gather& gather, int row) {
  return reinterpret_cast<int4*>(destination_bytes(gather, row));
}

// Blocks of kBlock threads that have at least so many in all.
inline int blocks_for(int64_t threads) { return static_cast<int>((threads + kBlock - 1) / kBlock); }

#ifdef __CUDACC__
// Notes the multiprocessor this block runs on.
__device__ inline void count_sm(const Gather& gather) {
  if (gather.sm_launches != nullptr && threadIdx.x == 0) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    atomicAdd(&gather.sm_launches[sm], 1U);
  }
}
#endif
