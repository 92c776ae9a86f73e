// Size of the GPU.
#pragma once

#include <cuda_runtime.h>

#include "check.h"

// SMs of the current device.
inline int sm_count() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "SMs");
  return count;
}
