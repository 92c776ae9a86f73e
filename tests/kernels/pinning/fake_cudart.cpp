// A CUDA runtime without a GPU that knows what is pinned: it refuses a copy that spans two
// registrations, and the registration that a test chooses.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {
std::mutex mutex;
std::map<const char*, size_t> pinned;  // begin and bytes of everything that is pinned
long refused = -1;                     // the number of the registration that fails, from 0
long registrations = 0;

bool is_pinned(const void* host, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  const char* begin = static_cast<const char*>(host);
  auto range = pinned.upper_bound(begin);
  if (range == pinned.begin()) {
    return false;
  }
  --range;
  return begin + size <= range->first + range->second;
}

const void* host_of(const void* to, const void* from, cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice ? from : to;
}
}  // namespace

extern "C" {
void refuse_registration(long number) {
  refused = number;
  registrations = 0;
}
long pinned_ranges() { return static_cast<long>(pinned.size()); }

cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  *out = std::malloc(size);
  pinned[static_cast<char*>(*out)] = size;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
  const bool found = pinned.erase(static_cast<char*>(pointer)) == 1;
  std::free(pointer);
  return found ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaHostRegister(void* begin, size_t size, unsigned) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (registrations++ == refused) {
    return cudaErrorMemoryAllocation;
  }
  pinned[static_cast<char*>(begin)] = size;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* begin) {
  const std::lock_guard<std::mutex> lock(mutex);
  // The memory must still be there.
  *static_cast<volatile char*>(begin) = 1;
  return pinned.erase(static_cast<char*>(begin)) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t) {
  if (!is_pinned(host_of(to, from, kind), size)) {
    return cudaErrorInvalidValue;
  }
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  const size_t reach = (height - 1) * from_pitch + width;
  if (!is_pinned(host_of(to, from, kind), reach)) {
    return cudaErrorInvalidValue;
  }
  for (size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, size_t size) {
  *out = std::malloc(size);
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* out) {
  *out = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return cudaErrorInvalidValue;  // there is no driver
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  usleep(20);  // the system may stop a thread; it should be within a call then
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorInvalidValue ? "invalid argument" : "out of memory";
}
}
