// Memory, streams and events of a variant's own, freed with the last reference to them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

// Throws std::runtime_error with CUDA's own message behind `what`, unless `status` is success.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

// Uninitialised arrays of `count` elements, in device memory and in page-locked host memory.
template <class T>
std::shared_ptr<T[]> on_device(size_t count) {
  void* made = nullptr;
  check(cudaMalloc(&made, count * sizeof(T)), "scratch in device memory");
  return {static_cast<T*>(made), [](T* memory) { cudaFree(memory); }};
}

template <class T>
std::shared_ptr<T[]> page_locked(size_t count) {
  void* made = nullptr;
  check(cudaHostAlloc(&made, count * sizeof(T), cudaHostAllocDefault), "scratch in host memory");
  return {static_cast<T*>(made), [](T* memory) { cudaFreeHost(memory); }};
}

inline std::shared_ptr<CUstream_st> new_stream() {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
  return {made, cudaStreamDestroy};
}

inline std::shared_ptr<CUevent_st> new_event() {
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "event");
  return {made, cudaEventDestroy};
}
