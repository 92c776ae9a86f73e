// The operation of this study: set every element of an array in GPU memory to one value.
// workload.py launches it through bindings.cpp and guarantees that the pointer is valid.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// It owns nothing: the memory must live until the fill is done.
struct Fill {
  float* dst;     // device memory, aligned to 16 bytes
  int64_t count;  // of elements, a multiple of 4
  float value;
};

// Enqueues the fill on `stream` and returns CUDA's status. Each variant defines it.
cudaError_t launch(const Fill& fill, cudaStream_t stream);
