// A CUDA runtime on the host, so that recipes run without a GPU: streams do everything at once,
// device memory is host memory, and a kernel runs thread after thread. As on a GPU, a copy fails if
// it crosses the border of a registration.
//   REFUSED: the number of the registration that fails, from 1
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#define CUDART_VERSION 13000
#define __global__
#define __device__
#define __host__
#define __grid_constant__

using std::min;
using cudaStream_t = struct Stream*;
using cudaEvent_t = struct Event*;
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorNotReady = 600 };
enum { cudaHostAllocDefault, cudaHostRegisterPortable, cudaEventDisableTiming };
enum { cudaStreamNonBlocking, cudaMemcpySrcAccessOrderStream };
enum { cudaMemcpyDefault, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
struct cudaMemcpyAttributes {
  int srcAccessOrder;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct Place {
  unsigned x;
};
inline Place gridDim, blockDim, blockIdx, threadIdx;

template <class Kernel>
void launch(size_t blocks, size_t threads, const Kernel& kernel) {
  gridDim.x = static_cast<unsigned>(blocks), blockDim.x = static_cast<unsigned>(threads);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel();
  }
}
inline uint64_t tick() {
  static uint64_t ns = 0;
  return ns += 5000;
}
inline int4 __ldcs(const int4* from) { return *from; }
inline void __stcs(int4* to, const int4& vector) { *to = vector; }

inline std::map<uintptr_t, uintptr_t> registered;  // begin and end
inline std::mutex registering;
// Whether [at, at + bytes) crosses no border of a registration.
inline bool is_whole(const void* at, size_t bytes) {
  const uintptr_t begin = uintptr_t(at), end = begin + bytes;
  return std::none_of(registered.begin(), registered.end(), [=](const auto& range) {
    return begin < range.second && end > range.first && (begin < range.first || end > range.second);
  });
}
inline cudaError_t cudaHostRegister(void* at, size_t bytes, unsigned) {
  static int calls = 0;
  const std::lock_guard<std::mutex> lock(registering);
  const char* refused = std::getenv("REFUSED");
  if (refused != nullptr && std::atoi(refused) == ++calls) return cudaErrorInvalidValue;
  return registered.emplace(uintptr_t(at), uintptr_t(at) + bytes), cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* at) {
  const std::lock_guard<std::mutex> lock(registering);
  return registered.erase(uintptr_t(at)), cudaSuccess;
}
template <class T>
cudaError_t cudaMalloc(T** out, size_t bytes) {
  *out = static_cast<T*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  return cudaSuccess;
}
template <class T>
cudaError_t cudaHostAlloc(T** out, size_t bytes, unsigned) {
  return cudaMalloc(out, bytes);
}
inline cudaError_t cudaFreeHost(void* memory) { return std::free(memory), cudaSuccess; }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, cudaStream_t) {
  if (!is_whole(to, bytes) || !is_whole(from, bytes)) return cudaErrorInvalidValue;
  return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, int, cudaStream_t) {
  for (size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyBatchAsync(void** to, const void** from, size_t* bytes, size_t count,
                                        cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to[i], from[i], bytes[i]);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t) {
  return std::memset(to, byte, bytes), cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t) {
  static int calls = 0;
  return ++calls % 3 ? cudaSuccess : cudaErrorNotReady;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = reinterpret_cast<cudaStream_t>(1), cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "an error"; }
