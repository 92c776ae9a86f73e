// The operation of this study: make every element of an array in GPU memory one value.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct Fill {
  float* dst;     // device memory, aligned to 16 bytes
  int64_t count;  // of elements, a multiple of 4
  float value;
};

// Enqueues the fill; says whether that worked. Each variant defines it.
cudaError_t launch(const Fill& fill, cudaStream_t stream);
