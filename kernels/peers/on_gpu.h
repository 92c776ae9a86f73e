// The GPU that calls go to.
#pragma once

#include "operation.h"

// While it lives, this thread's calls go to another GPU.
class OnGpu {
 public:
  explicit OnGpu(int gpu) {
    check(cudaGetDevice(&before_), "current GPU");
    check(cudaSetDevice(gpu), "GPU");
  }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};
