// A CUDA runtime without a GPU that knows the pinned memory: it refuses a copy that spans two
// registrations, and the registration that a test chooses.
//
// If the environment names a file, it exists while a neighbour has a stream, and each call of the
// neighbour adds a byte. Registrations and their ends then wait for a call, whether the neighbour
// is a thread or a process.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {
std::mutex mutex;
std::map<const char*, size_t> pinned;  // begin and bytes
long refused = -1;                     // the number of the registration that fails, from 0
long registrations = 0;

constexpr int kWaitUs = 100, kMaxWaits = 600'000;  // a minute
constexpr int kCallUs = 20;  // the system may stop a thread; it should be within a call then

bool is_pinned(const char* begin, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  auto range = pinned.upper_bound(begin);
  return range != pinned.begin() && begin + size <= (--range)->first + range->second;
}

const char* calls_file() { return std::getenv("FAKE_CUDA_CALLS"); }

// Bytes of the file; -1 without a neighbour.
off_t calls() {
  struct stat found{};
  return calls_file() != nullptr && stat(calls_file(), &found) == 0 ? found.st_size : -1;
}

void add_calls(size_t count, int flags = 0) {
  if (calls_file() != nullptr) {
    const int file = open(calls_file(), O_WRONLY | O_APPEND | flags, 0600);
    if (write(file, ".", count) != static_cast<ssize_t>(count)) {
      std::abort();
    }
    close(file);
  }
}

// Waits for a call of the neighbour if there is one, so that the caller overlaps a call on any
// machine. False if none came.
bool overlaps_a_call() {
  const off_t before = calls();
  for (int i = 0; i < kMaxWaits; ++i) {
    const off_t now = calls();
    if (before < 0 || now < 0 || now > before) {
      return true;
    }
    usleep(kWaitUs);
  }
  return false;
}

cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, cudaMemcpyKind kind) {
  const void* host = kind == cudaMemcpyHostToDevice ? from : to;
  if (!is_pinned(static_cast<const char*>(host), (height - 1) * from_pitch + width)) {
    return cudaErrorInvalidValue;
  }
  for (size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
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
  if (!overlaps_a_call()) {
    return cudaErrorLaunchTimeout;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  if (registrations++ == refused) {
    return cudaErrorMemoryAllocation;
  }
  pinned[static_cast<char*>(begin)] = size;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* begin) {
  if (!overlaps_a_call()) {
    return cudaErrorLaunchTimeout;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  *static_cast<volatile char*>(begin) = 1;  // the memory must still be there
  return pinned.erase(static_cast<char*>(begin)) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t) {
  return copy_rows(to, size, from, size, size, 1, kind);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMalloc(void** out, size_t size) {
  *out = std::malloc(size);
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  std::free(pointer);
  if (calls() >= 0) {
    usleep(kCallUs);
    add_calls(1);
  }
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = nullptr;
  add_calls(0, O_CREAT);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  if (calls_file() != nullptr) {
    unlink(calls_file());
  }
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  usleep(kCallUs);
  add_calls(1);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* out) { return *out = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = 1, cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return cudaErrorInvalidValue;  // there is no driver
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorInvalidValue ? "invalid argument" : "out of memory";
}
}
