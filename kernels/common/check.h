// CUDA's status codes as exceptions.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

// Throws std::runtime_error with CUDA's message behind `what`, unless `status` is success.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}
