// The operation of this study: a sequence of reads of host memory at scattered addresses.
// workload.py launches it through bindings.cpp and guarantees that the pointers are valid.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/launch.h"

constexpr int kLineVectors = 8;      // 16-byte vectors of a line of 128 bytes
constexpr int kMaxRowVectors = 256;  // rows of at most 4 KiB
constexpr int kMaxChained = 8192;    // dependent reads per launch

// One launch. Its read i is number first + i of a walk that visits `count` addresses cyclically,
// each time reading the next of the `span` lines at an address. It owns nothing: the memory must
// live until the launch is done.
struct Walk {
  const int4* pool;       // pinned host memory
  const int32_t* places;  // device memory, [count]: the addresses in order, in strides
  void* dst;              // device memory: one word per line read, or the rows read, packed
  int64_t stride;         // in vectors, of `places`
  uint32_t count;
  uint32_t span;
  uint32_t first;  // less than count * span
  int reads;
  int read_vectors;  // vectors of a row; kLineVectors for a line
  uint32_t zero;     // 0; the compiler must not know
};

// The first vector of read `i`.
__host__ __device__ inline int64_t vector_of(const Walk& walk, uint32_t i) {
  const uint32_t number = walk.first + i;
  const uint32_t line = number / walk.count % walk.span;
  return walk.places[number % walk.count] * walk.stride + line * kLineVectors;
}

__device__ inline uint32_t word_of(const int4& vector) {
  return vector.x ^ vector.y ^ vector.z ^ vector.w;
}

// Enqueues the reads on `stream` and returns CUDA's status without waiting. Each variant defines
// it.
cudaError_t launch(const Walk& walk, cudaStream_t stream);
