// Owned memory, streams and events: freed with their last owner, so that nothing leaks where a
// constructor throws. Owners are shared because std::function copies what it captures.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "check.h"

// Uninitialised arrays of `count` elements, in device memory and in pinned host memory, which the
// device has at the same address.
template <class T>
std::shared_ptr<T[]> on_device(size_t count) {
  void* made = nullptr;
  check(cudaMalloc(&made, count * sizeof(T)), "scratch in device memory");
  return {static_cast<T*>(made), [](T* memory) { cudaFree(memory); }};
}

template <class T>
std::shared_ptr<T[]> pinned(size_t count) {
  void* made = nullptr;
  check(cudaHostAlloc(&made, count * sizeof(T), cudaHostAllocDefault), "scratch in host memory");
  return {static_cast<T*>(made), [](T* memory) { cudaFreeHost(memory); }};
}

// The same in host memory, all zero.
template <class T>
std::shared_ptr<T[]> zeroed(int64_t count) {
  const auto made = pinned<T>(static_cast<size_t>(count));
  std::fill_n(made.get(), count, T{});
  return made;
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
