// The operation of this study: rows of host memory to consecutive places of device memory.
// workload.py launches it through bindings.cpp and answers for what the pointers point to.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/launch.h"

constexpr int kMaxRowTurns = 4;  // so rows of at most 4 * 32 vectors of 16 bytes
constexpr int kMaxInFlight = 4;  // rows

// One copy. It owns nothing; what it points to stays until the copy is done.
struct Rows {
  const int4* src;        // pinned host memory
  int4* dst;              // device memory, rows packed
  const int32_t* starts;  // device memory, [rows]: each row's first vector in src
  int64_t rows;
  int row_vectors;  // 16-byte vectors of a row
  int blocks;       // of a persistent grid; 0 for as many as there are rows for
  int in_flight;    // rows a warp loads before it stores: 1, 2 or 4
};

// Enqueues the copy on `stream`, waits for nothing, and returns CUDA's error, if any. Each variant
// defines it.
cudaError_t launch(const Rows& rows, cudaStream_t stream);
