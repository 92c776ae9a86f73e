// The current GPU of a thread.
#pragma once

#include "operation.h"

// Makes another GPU the current one of this thread during its lifetime.
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
