// The operation of this study: reads of host memory at addresses that lie apart, one after another.
// workload.py launches it through bindings.cpp and answers for what the pointers point to.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/launch.h"

constexpr int kLineVectors = 8;      // 16-byte vectors of a line of 128 bytes
constexpr int kMaxRowVectors = 256;  // so rows of at most 4 KiB
constexpr int kMaxChained = 8192;    // dependent reads of a launch

// One launch. Read i of it is number first + i of a walk that visits `count` addresses in an order,
// again and again, and each time reads another of the `span` lines that belong to an address. It
// owns nothing; what it points to stays until the launch is done.
struct Walk {
  const int4* pool;       // page-locked host memory
  const int32_t* places;  // device memory, [count]: the addresses in their order, in strides
  void* dst;              // device memory: a word of each read, or the rows read, packed
  int64_t stride;         // vectors from one address to the next
  uint32_t count;
  uint32_t span;
  uint32_t first;  // less than count * span
  int reads;
  int read_vectors;  // of a row; kLineVectors of a line
  uint32_t zero;     // 0, which the compiler cannot know
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

// Enqueues the reads on `stream`, waits for nothing, and returns CUDA's error, if any. Each variant
// defines it.
cudaError_t launch(const Walk& walk, cudaStream_t stream);
