// A CUDA runtime without a GPU, for the host code of variants: memory of all GPUs is host memory.
//
// Work on a stream is done at once or, after a call of be_late, when somebody waits for it and no
// earlier. Refused are calls that use a stream or event of another than the current GPU, and copies
// that span two ranges of pinned memory. It has no kernels.
#include "cudart.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

using Work = std::function<void()>;

struct CUevent_st {
  int gpu;
  cudaStream_t stream = nullptr;
  size_t after = 0;  // work items of the stream that it waits for
};

namespace {

struct Stream {
  int gpu = 0;
  std::deque<Work> work;
  size_t done = 0;

  size_t given() const { return done + work.size(); }
};

constexpr int kRegistrationUs = 500;  // so that a neighbour gets to call meanwhile

int current = 0;
bool is_late = false;
// Of programs, the environment may say so: the registration that fails, from 1 on, and the bytes
// that can be pinned.
size_t given(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? SIZE_MAX : std::strtoull(text, nullptr, 10);
}
const size_t refused = given("REFUSED"), pinnable = given("PINNABLE");
int calls_to_failure = -1;
cudaError_t last = cudaSuccess;
// Also those that are destroyed: events stand for work. Kept at the end, as its keys are memory.
std::map<cudaStream_t, Stream>& streams = *new std::map<cudaStream_t, Stream>;
std::map<const char*, size_t> pinned;  // begin and bytes
std::recursive_mutex mutex;            // of all state
using Lock = std::lock_guard<std::recursive_mutex>;

void drain(cudaStream_t of, size_t until) {
  const Lock lock(mutex);
  Stream& stream = streams[of];
  while (stream.done < until && !stream.work.empty()) {
    const Work work = std::move(stream.work.front());
    stream.work.pop_front();
    work();
    ++stream.done;
  }
}

bool fails() {
  const bool now = calls_to_failure >= 0 && calls_to_failure-- == 0;
  last = now ? cudaErrorUnknown : last;
  return now;
}

template <typename T, typename U>
cudaError_t give(T* out, U value) {
  *out = value;
  return cudaSuccess;
}

// Whether memory begins in one pinned range and ends beyond it.
bool spans_two(const void* memory, size_t size) {
  const Lock lock(mutex);
  const auto* begin = static_cast<const char*>(memory);
  auto range = pinned.upper_bound(begin);
  if (range == pinned.begin()) {
    return false;
  }
  const char* end = (--range)->first + range->second;
  return begin < end && begin + size > end;
}

cudaError_t unpin(const void* begin) {
  const Lock lock(mutex);
  return pinned.erase(static_cast<const char*>(begin)) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t last_error = cudaSuccess;
cudaError_t event_status = cudaSuccess;
float elapsed_ms = 250;

cudaError_t enqueue(cudaStream_t stream, Work work) {
  const Lock lock(mutex);
  if (fails()) {
    return last;
  }
  if (streams[stream].gpu != current) {
    return last = cudaErrorInvalidResourceHandle;
  }
  is_late ? streams[stream].work.push_back(std::move(work)) : work();
  return cudaSuccess;
}

void run_ahead(cudaStream_t of) {
  for (auto& [handle, stream] : streams) {
    if (handle != of) {
      drain(handle, stream.given());
    }
  }
}

extern "C" {
void be_late() { is_late = true; }
void fail_at(int call) { calls_to_failure = call; }
int pinned_ranges() { return static_cast<int>(pinned.size()); }

cudaError_t cudaGetDevice(int* gpu) { return give(gpu, current); }
cudaError_t cudaGetDeviceCount(int* gpus) { return give(gpus, 8); }
cudaError_t cudaSetDevice(int gpu) { return give(&current, gpu); }
cudaError_t cudaDeviceGetAttribute(int* sms, cudaDeviceAttr, int) { return give(sms, 8); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* about, int) {
  *about = {};
  std::strcpy(about->name, "NVIDIA Made-up");
  about->major = 9;
  about->l2CacheSize = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  run_ahead(reinterpret_cast<cudaStream_t>(-1));
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return give(free, *total = 1); }
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t) { return "refused"; }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return cudaErrorInvalidValue;  // there is no driver
}

// Streams and events.

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  const Lock lock(mutex);
  *out = static_cast<cudaStream_t>(std::malloc(1));  // never freed, so that no handle comes back
  streams[*out].gpu = current;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(mutex);
  if (fails()) {
    return last;
  }
  drain(stream, streams[stream].given());
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  return give(out, new CUevent_st{current});
}
cudaError_t cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (fails()) {
    return last;
  }
  if (event->gpu != streams[stream].gpu) {
    return last = cudaErrorInvalidResourceHandle;
  }
  event->stream = stream;
  event->after = streams[stream].given();
  return cudaSuccess;
}
// Waits for the current recording of the event, even if it is recorded again later.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (fails()) {
    return last;
  }
  streams[stream].work.push_back([of = event->stream, after = event->after] { drain(of, after); });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  drain(event->stream, event->after);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return event_status; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  return give(ms, elapsed_ms);
}

// Copies.

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (spans_two(from, (height - 1) * from_pitch + width) ||
      spans_two(to, (height - 1) * to_pitch + width)) {
    return cudaErrorInvalidValue;
  }
  return enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<char*>(to) + row * to_pitch,
                  static_cast<const char*>(from) + row * from_pitch, width);
    }
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, size, from, size, size, 1, kind, stream);
}
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes*, size_t*, size_t,
                                 cudaStream_t stream) {
  for (size_t i = 0; i < count; ++i) {
    cudaMemcpyAsync(to[i], from[i], sizes[i], cudaMemcpyDefault, stream);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(to, value, size); });
}
cudaError_t cudaMemset(void* to, int value, size_t size) {
  std::memset(to, value, size);
  return cudaSuccess;
}

// Memory.

cudaError_t cudaMalloc(void** out, size_t size) {
  const Lock lock(mutex);
  if (fails()) {
    return last;
  }
  return posix_memalign(out, 64, size) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
// As CUDA's, it waits for the GPUs.
cudaError_t cudaFree(void* pointer) {
  const Lock lock(mutex);
  run_ahead(nullptr);
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  const Lock lock(mutex);
  const cudaError_t status =
      size > pinnable ? last = cudaErrorMemoryAllocation : cudaMalloc(out, size);
  if (status == cudaSuccess) {
    pinned[static_cast<char*>(*out)] = size;
  }
  return status;
}
cudaError_t cudaFreeHost(void* pointer) {
  const cudaError_t status = pointer == nullptr ? cudaSuccess : unpin(pointer);
  cudaFree(pointer);
  return status;
}
cudaError_t cudaHostRegister(void* begin, size_t size, unsigned) {
  static size_t calls = 0;
  usleep(kRegistrationUs);
  const Lock lock(mutex);
  if (fails() || ++calls == refused) {
    return last = cudaErrorUnknown;
  }
  pinned[static_cast<char*>(begin)] = size;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* begin) {
  usleep(kRegistrationUs);
  *static_cast<volatile char*>(begin) = 1;  // the memory must still be there
  return unpin(begin);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  *out = {};
  out->type = cudaMemoryTypeHost;
  out->hostPointer = out->devicePointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
}
