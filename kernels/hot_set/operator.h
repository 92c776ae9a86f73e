// The operation of this study: one step of a hot set. Each request has `slots` rows of its context
// in device memory. A step takes `topk` row ids of each request, fetches the rows that are missing
// from host memory, evicts the least recently used ones for them, and writes the slot of every id.
// bindings.cpp checks shapes, kinds of memory, ids and places before it prepares a variant.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "../common/launch.h"
#include "../common/rows.h"

// Bytes of a row and its 16-byte vectors. study.yaml sets the macro.
constexpr int kRowBytes = TOKEN_BYTES;
constexpr int kRowVectors = kRowBytes / 16;
static_assert(kRowBytes % 16 == 0, "token_bytes must be a multiple of 16");

// Limits that every variant supports. bindings.cpp refuses more.
constexpr int kMaxTopk = 2048;
constexpr int kMaxSlots = 8192;
constexpr int kMaxContextRows = 131072;

constexpr int32_t kFree = -1;  // row of a slot that holds none, and its last use
constexpr int kChosen = -1;    // share that the variant chooses

// The hot set of one layer. The memory belongs to the caller and outlives everything prepared for
// it. `rows` and `last_used` are the state: variants read and update them in every step, and may
// keep scratch memory beside them. Of two rows that were last used in the same step, the one with
// the lower id is evicted first. Free slots are filled first.
struct HotSet {
  const uint8_t* pool;  // pinned host memory, at the same address on the device
  int64_t pool_rows;
  const int32_t* places;  // device memory, [requests, context_rows]: pool row of each row
  const int32_t* ids;     // device memory, [requests, topk]: rows of the context, repeats allowed
  const int32_t* step;    // device memory, [1]: number of this step, which increases from 0
  int32_t* out;           // device memory, [requests, topk]: slot of each id
  uint8_t* hot;           // device memory, [requests, slots] rows of row_bytes
  int32_t* rows;          // device memory, [requests, slots]: row in each slot, or kFree
  int32_t* last_used;     // device memory, [requests, slots]: step of the last use, or kFree
  int requests;
  int topk;
  int slots;
  int context_rows;
  int share_32nds;  // of the misses, which SMs read in place while the CPU packs others; or kChosen
};

// Does the current step of a layer on a stream: enqueues it, or returns when it is done. A launch
// that repeats a step changes nothing. Scratch memory and threads end with it.
using Launch = std::function<void(int layer, cudaStream_t stream)>;

// A prepared variant. Only `launch` must be there.
struct Prepared {
  Launch launch;
  // Lets the variant's threads flush these pool rows from the CPU's caches and leaves them awake.
  std::function<void(const std::vector<int64_t>& pool_rows)> flush = nullptr;
  // Work of a ceiling that precedes each new step and is not timed.
  Launch before_step = nullptr;
  // Writes state that is kept in host memory to `rows` and `last_used`, for the check.
  std::function<void()> publish = nullptr;
};

// Prepares steps of the layers, which are of equal shape and whose slots are all free. Threads may
// be pinned to `cpus`, in this order; the first ones are left to the caller and others. Each
// variant defines it. Throws std::runtime_error if its scratch memory does not fit. The caller must
// check cudaGetLastError for launches that CUDA refuses.
Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>& cpus);

// Pool row of a row of a request's context.
HOST_DEVICE inline int32_t pool_row(const HotSet& set, int request, int32_t id) {
  return set.places[static_cast<int64_t>(request) * set.context_rows + id];
}

// Vectors of a pool row, and of a request's slot.
HOST_DEVICE inline const int4* pool_vectors(const HotSet& set, int32_t row) {
  return reinterpret_cast<const int4*>(set.pool + static_cast<int64_t>(row) * kRowBytes);
}

HOST_DEVICE inline int4* slot_vectors(const HotSet& set, int request, int slot) {
  const int64_t row = static_cast<int64_t>(request) * set.slots + slot;
  return reinterpret_cast<int4*>(set.hot + row * kRowBytes);
}
