// The operator every variant of this study implements: rows of a large pool in host memory are
// gathered into device memory, other rows with every launch. bindings.cpp has checked shapes, kinds
// of memory and rows before it prepares a variant.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

// Bytes of one row, their number of 16-byte vectors, and the bytes of it that a slot of the pool
// holds; study.yaml sets the macros.
constexpr int kRowBytes = TOKEN_BYTES;
constexpr int kRowVectors = kRowBytes / 16;
constexpr int kSlotBytes = SLOT_BYTES;
static_assert(kRowBytes % 16 == 0, "token_bytes must be a multiple of 16");
static_assert(kSlotBytes == kRowBytes || kSlotBytes == kRowBytes - 16,
              "slot_bytes must be token_bytes, or 16 less where the scales are in device memory");

constexpr int kWarp = 32;
constexpr int kBlock = 256;  // threads of a block, unless a variant says otherwise

// One launch: for i in [0, rows), row pairs[i].x of the pool goes to row pairs[i].y of dst. It owns
// nothing; what it points to outlives whatever was prepared for it.
struct Gather {
  const uint8_t* pool;  // page-locked host memory; the device has it at the same address
  int64_t pool_rows;
  uint8_t* dst;           // device memory
  const int2* pairs;      // device memory, [rows] of (source row, destination row)
  int64_t rows;           // the same in all launches
  int64_t first;          // pairs[0].x, for the ceilings, whose rows are consecutive
  const int4* scales;     // device memory, [pool_rows], where slots do not hold them; else null
  uint32_t* sm_launches;  // device memory, [SMs]: blocks that started on each SM
};

// Does one launch on a stream: enqueues it, or returns when it is done. It owns its scratch, and
// whatever runs for it ends with it.
using Launch = std::function<void(const Gather& gather, cudaStream_t stream)>;

// What a variant does with a gather. Where threads of its own read the rows, `flush` has them flush
// the rows from the CPU's caches, and leaves them awake.
struct Prepared {
  Launch launch;
  std::function<void(const Gather& gather)> flush = nullptr;
};

// What launches the gathers of `sets`, which differ in pairs only. `cpus` are those that threads
// may be pinned to, in this order; the first ones are left to the caller and others. Each variant
// defines it. Throws std::runtime_error where there is no room for its scratch. A launch that CUDA
// refuses is left to cudaGetLastError, which the caller asks.
Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus);

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

// Where a row of either side begins, as bytes or as 16-byte vectors.
HOST_DEVICE inline const uint8_t* source_bytes(const Gather& gather, int64_t row) {
  return gather.pool + row * kSlotBytes;
}

HOST_DEVICE inline uint8_t* destination_bytes(const Gather& gather, int64_t row) {
  return gather.dst + row * kRowBytes;
}

HOST_DEVICE inline const int4* source_vectors(const Gather& gather, int64_t row) {
  return reinterpret_cast<const int4*>(source_bytes(gather, row));
}

HOST_DEVICE inline int4* destination_vectors(const Gather& gather, int64_t row) {
  return reinterpret_cast<int4*>(destination_bytes(gather, row));
}

// Blocks of kBlock threads that have at least so many in all.
inline int blocks_for(int64_t threads) { return static_cast<int>((threads + kBlock - 1) / kBlock); }

#ifdef __CUDACC__
// Notes the multiprocessor this block runs on.
__device__ inline void count_sm(const Gather& gather) {
  if (threadIdx.x == 0) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    atomicAdd(&gather.sm_launches[sm], 1U);
  }
}
#endif
