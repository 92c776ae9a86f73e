// The GPU that calls go to, and streams and events on it.
#pragma once

#include <memory>

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

inline std::shared_ptr<CUevent_st> new_event() {
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "event");
  return {made, cudaEventDestroy};
}

inline std::shared_ptr<CUstream_st> new_stream() {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
  return {made, cudaStreamDestroy};
}
