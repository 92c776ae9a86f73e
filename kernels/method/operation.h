// The operation of this study: copy `bytes` from pinned host memory, or nothing.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

struct Copy {
  const uint8_t* src;  // pinned host memory
  uint8_t* dst;        // device memory
  int64_t bytes;
};

// Performs or enqueues the operation. Each variant defines it.
void launch(const Copy& copy, cudaStream_t stream);
