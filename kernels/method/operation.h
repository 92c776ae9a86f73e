// The operation of this study: copy `bytes` from pinned host memory, or nothing.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct Copy {
  const uint8_t* src;  // pinned host memory
  uint8_t* dst;        // device memory
  int64_t bytes;
};

// Performs or enqueues the operation; says whether that worked. Each variant defines it.
cudaError_t launch(const Copy& copy, cudaStream_t stream);
