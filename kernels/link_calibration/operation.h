// The operation of this study: copy rows of host memory to consecutive places in device memory.
// workload.py launches it through bindings.cpp and guarantees that the pointers are valid.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/launch.h"

constexpr int kMaxRowTurns = 4;  // of a warp, so a row has at most 4 * 32 vectors
constexpr int kMaxInFlight = 4;  // rows

// One copy. It owns nothing: the memory must live until the copy is done.
struct Rows {
  const int4* src;        // pinned host memory
  int4* dst;              // device memory, rows packed
  const int32_t* starts;  // device memory, [rows]: each row's first vector in src
  int64_t rows;
  int row_vectors;  // 16-byte vectors of a row
  int blocks;       // of a persistent grid; 0 for enough blocks for all rows
  int in_flight;    // rows that a warp loads before it stores: 1, 2 or 4
};

// Enqueues the copy on `stream` and returns CUDA's status without waiting. Each variant defines it.
cudaError_t launch(const Rows& rows, cudaStream_t stream);
