// The operation of this study: copy bytes from pinned host memory, or do nothing. workload.py
// launches it through bindings.cpp and guarantees that the pointers are valid.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// It owns nothing: the memory must live until the copy is done.
struct Copy {
  const uint8_t* src;  // pinned host memory
  uint8_t* dst;        // device memory
  int64_t bytes;       // a multiple of 16
};

// Performs the operation or enqueues it on `stream`, and returns CUDA's status. Each variant
// defines it.
cudaError_t launch(const Copy& copy, cudaStream_t stream);
