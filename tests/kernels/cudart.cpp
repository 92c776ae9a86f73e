// A CUDA runtime without a GPU, for the host code of variants: memory of all GPUs is host memory.
//
// Work on a stream is done at once or, with the macro LATE, when somebody waits for it and no
// earlier. A call that uses a stream is refused while another GPU is current, and so is an event on
// a stream of another GPU. It has no kernels.
#include "cudart.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

using Work = std::function<void()>;

struct CUevent_st {
  int gpu;
  cudaStream_t stream = nullptr;
  size_t after = 0;  // work items of the stream that it waits for
};

struct CUgraph_st {
  std::vector<Work> work;
};

namespace {

struct Stream {
  int gpu = 0;
  std::deque<Work> work;
  size_t done = 0;

  size_t given() const { return done + work.size(); }
};

#ifdef LATE
constexpr bool kIsLate = true;
#else
constexpr bool kIsLate = false;
#endif

int current = 0;
int calls_to_failure = -1;
cudaError_t last = cudaSuccess;
// Also those that are destroyed: events stand for work. Kept at the end, as its keys are memory.
std::map<cudaStream_t, Stream>& streams = *new std::map<cudaStream_t, Stream>;
CUgraph_st* captured = nullptr;

void drain(cudaStream_t of, size_t until) {
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

cudaError_t refused() { return last = cudaErrorInvalidResourceHandle; }

void copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
               size_t height) {
  for (size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
}

}  // namespace

int copies_until_failure = -1;
cudaError_t last_error = cudaSuccess;
cudaError_t event_status = cudaSuccess;

void fail_at(int call) { calls_to_failure = call; }

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (fails()) {
    return last;
  }
  if (streams[stream].gpu != current) {
    return refused();
  }
  if (captured != nullptr) {
    captured->work.push_back(std::move(work));
  } else if (kIsLate) {
    streams[stream].work.push_back(std::move(work));
  } else {
    work();
  }
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
cudaError_t cudaGetDevice(int* gpu) { return give(gpu, current); }
cudaError_t cudaSetDevice(int gpu) { return give(&current, gpu); }
cudaError_t cudaDeviceGetAttribute(int* sms, cudaDeviceAttr, int) { return give(sms, 8); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = static_cast<cudaStream_t>(std::malloc(1));  // never freed, so that no handle comes back
  streams[*out].gpu = current;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (fails()) {
    return last;
  }
  drain(stream, streams[stream].given());
  return cudaSuccess;
}
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
    return refused();
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
// The same time between any two events.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { return give(ms, 250); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (copies_until_failure >= 0 && copies_until_failure-- == 0) {
    return cudaErrorInvalidValue;
  }
  return enqueue(stream, [=] { std::memcpy(to, from, size); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(to, value, size); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return enqueue(stream, [=] { copy_rows(to, to_pitch, from, from_pitch, width, height); });
}
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes*, size_t*, size_t,
                                 cudaStream_t stream) {
  for (size_t i = 0; i < count; ++i) {
    enqueue(stream, [to = to[i], from = from[i], size = sizes[i]] { std::memcpy(to, from, size); });
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t size) {
  std::memset(to, value, size);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  if (fails()) {
    return last;
  }
  return posix_memalign(out, 64, size) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
// As CUDA's, it waits for the GPUs.
cudaError_t cudaFreeHost(void* pointer) {
  run_ahead(nullptr);
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, size_t size) { return cudaHostAlloc(out, size, 0); }
cudaError_t cudaFree(void* pointer) { return cudaFreeHost(pointer); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  *out = {};
  out->type = cudaMemoryTypeHost;
  out->hostPointer = out->devicePointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return give(&captured, new CUgraph_st);
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* out) {
  return give(out, std::exchange(captured, nullptr));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return give(out, reinterpret_cast<cudaGraphExec_t>(new CUgraph_st(*graph)));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return cudaGraphDestroy(reinterpret_cast<cudaGraph_t>(graph));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const Work& work : reinterpret_cast<cudaGraph_t>(graph)->work) {
    enqueue(stream, work);
  }
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t) { return "refused"; }
}
