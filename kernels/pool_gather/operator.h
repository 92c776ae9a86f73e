// The operation of this study: each launch gathers other rows of a large pool in host memory into
// device memory. bindings.cpp checks shapes, kinds of memory and rows before it prepares a variant.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "../common/launch.h"
#include "../common/rows.h"

// Bytes of a row, its 16-byte vectors, and the bytes of it in a slot of the pool. study.yaml sets
// the macros.
constexpr int kRowBytes = TOKEN_BYTES;
constexpr int kRowVectors = kRowBytes / 16;
constexpr int kSlotBytes = SLOT_BYTES;
static_assert(kRowBytes % 16 == 0, "token_bytes must be a multiple of 16");
static_assert(kSlotBytes == kRowBytes || kSlotBytes == kRowBytes - 16,
              "slot_bytes must be token_bytes, or 16 less where the scales are in device memory");

// One launch: for i in [0, rows), row pairs[i].x of the pool goes to row pairs[i].y of dst. The
// memory belongs to the caller and outlives everything prepared for it.
struct Gather {
  const uint8_t* pool;  // pinned host memory, at the same address on the device
  int64_t pool_rows;
  uint8_t* dst;           // device memory
  const int2* pairs;      // device memory, [rows] of (source row, destination row)
  int64_t rows;           // the same in all launches
  int64_t first;          // pairs[0].x, for the ceilings, whose rows are consecutive
  const int4* scales;     // device memory, [pool_rows]; null if slots hold the scales
  uint32_t* sm_launches;  // device memory, [SMs]: blocks that started on each SM
};

// Does one launch on a stream: enqueues it, or returns when it is done. Its scratch memory and its
// threads end with it.
using Launch = std::function<void(const Gather& gather, cudaStream_t stream)>;

// A prepared variant. If its threads read the rows, `flush` lets them flush the rows from the CPU's
// caches and leaves them awake.
struct Prepared {
  Launch launch;
  std::function<void(const Gather& gather)> flush = nullptr;
};

// Prepares launches of the gathers of `sets`, which differ in pairs only. Threads may be pinned to
// `cpus`, in this order; the first ones are left to the caller and others. Each variant defines it.
// Throws std::runtime_error if its scratch memory does not fit. The caller must check
// cudaGetLastError for launches that CUDA refuses.
Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus);

// Addresses of a row on either side.
HOST_DEVICE inline const uint8_t* source_bytes(const Gather& gather, int64_t row) {
  return gather.pool + row * kSlotBytes;
}

HOST_DEVICE inline uint8_t* destination_bytes(const Gather& gather, int64_t row) {
  return gather.dst + row * kRowBytes;
}
