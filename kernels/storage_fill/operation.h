// The operation of this study: make every element of an array in GPU memory one value. workload.py
// launches it through bindings.cpp and answers for what the pointer points to.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Owns nothing; the memory stays until the fill is done.
struct Fill {
  float* dst;     // device memory, aligned to 16 bytes
  int64_t count;  // of elements, a multiple of 4
  float value;
};

// Enqueues the fill on `stream` and returns CUDA's error, if any. Each variant defines it.
cudaError_t launch(const Fill& fill, cudaStream_t stream);
