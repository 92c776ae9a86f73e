// A CUDA runtime on the host, so that the programs of tools/ run without a GPU: streams do
// everything at once, device memory is host memory, and a kernel runs thread after thread, but
// reach.cu's take the time that a made-up GPU would need. As on a GPU, a copy fails if it crosses
// the border of a registration. The environment describes the GPU, in SI units:
//   REFUSED, the number of the registration that fails, from 1; PINNABLE bytes of host memory
//   HELD translations of COVERS bytes, WALK seconds and DOUBLING more for each doubled pool, a link
//   of LINK bytes per second
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#define CUDART_VERSION 13000
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __clzll __builtin_clzll

using std::min;
using cudaStream_t = struct Stream*;
using cudaEvent_t = struct Event*;
enum cudaError_t : int { cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation };
constexpr cudaError_t cudaErrorNotReady{600};
enum { cudaHostAllocDefault, cudaHostRegisterPortable, cudaEventDisableTiming };
enum { cudaStreamNonBlocking, cudaMemcpySrcAccessOrderStream };
enum { cudaMemcpyDefault, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
struct cudaMemcpyAttributes {
  int srcAccessOrder;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
using ulonglong2 = int4;
struct cudaDeviceProp {
  char name[16] = "NVIDIA Made-up";
  int major = 9, minor = 0, l2CacheSize = 1 << 20, pageableMemoryAccessUsesHostPageTables = 0;
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

inline double given(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}
inline cudaError_t last = cudaSuccess;
inline cudaError_t status(bool is_success, cudaError_t otherwise) {
  return is_success ? cudaSuccess : last = otherwise;
}

inline float gather_ms = 0;
// A launch of reach.cu's gather, by its Walk.
template <class Walk>
void gather_on_made_up_gpu(const Walk& walk) {
  const double covers = given("COVERS", 65536), held = given("HELD", 4096), row = double(walk.row);
  const double places = double(walk.places), link = row / given("LINK", 50e9);
  const double needed = std::min(places, places * double(walk.stride) / covers);
  const double walk_s = given("WALK", 20e-9) + given("DOUBLING", 3e-9) * std::log2(needed / held);
  const double walks_s = (1 - held / needed) * walk_s * (1 + (row - 16) / covers);
  const double seconds = walk.turns != 0 && needed > held ? std::max(link, walks_s) : link;
  gather_ms = static_cast<float>(seconds * (1 << 18) * 1e3);
}

inline std::map<uintptr_t, uintptr_t> registered;  // begin and end
inline std::mutex registering;
// Whether [at, at + bytes) crosses no border of a registration.
inline bool is_whole(const void* at, size_t bytes) {
  const uintptr_t begin = uintptr_t(at), end = begin + bytes;
  const std::lock_guard<std::mutex> lock(registering);  // another thread may register
  return std::none_of(registered.begin(), registered.end(), [=](const auto& range) {
    return begin < range.second && end > range.first && (begin < range.first || end > range.second);
  });
}
inline cudaError_t cudaHostRegister(void* at, size_t bytes, unsigned) {
  static int calls = 0;
  const std::lock_guard<std::mutex> lock(registering);
  if (given("REFUSED", 0) == ++calls) return cudaErrorInvalidValue;
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
  const bool is_free = double(bytes) <= given("PINNABLE", 1e15);
  return is_free ? cudaMalloc(out, bytes) : status(false, cudaErrorMemoryAllocation);
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
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t = nullptr) {
  return std::memset(to, byte, bytes), cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t) {
  static int calls = 0;
  return ++calls % 3 ? cudaSuccess : cudaErrorNotReady;
}
inline cudaError_t cudaEventCreate(cudaEvent_t*) { return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  return *ms = gather_ms, cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = reinterpret_cast<cudaStream_t>(1), cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
inline const char* cudaGetErrorString(cudaError_t) { return "an error"; }
