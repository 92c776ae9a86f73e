// A CUDA runtime that simulates several GPUs in host memory. A stream runs its work when somebody
// waits for it. A call that uses a stream is refused while another GPU is current, and so is an
// event on a stream of another GPU.
#include "several_gpus.h"

#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>

struct CUstream_st {
  int gpu;
  std::deque<std::function<void()>> work;
  int done = 0;
};

struct CUevent_st {
  int gpu;
  CUstream_st* stream = nullptr;
  int after = 0;  // work items of the stream that it waits for
};

namespace {
int current = 0;
cudaError_t last = cudaSuccess;
std::deque<CUstream_st> streams;  // also those that are destroyed, for events stand for their work

void drain(CUstream_st* stream, int until) {
  while (stream->done < until && !stream->work.empty()) {
    const std::function<void()> work = std::move(stream->work.front());
    stream->work.pop_front();
    work();
    ++stream->done;
  }
}

int given(const CUstream_st* stream) {
  return stream->done + static_cast<int>(stream->work.size());
}

cudaError_t refused() { return last = cudaErrorInvalidResourceHandle; }

int calls_to_failure = -1;  // none fails

bool fails() { return calls_to_failure >= 0 && calls_to_failure-- == 0; }

cudaError_t failed() { return last = cudaErrorUnknown; }
}  // namespace

void fail_at(int call) { calls_to_failure = call; }

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  if (fails()) {
    return failed();
  }
  if (stream->gpu != current) {
    return refused();
  }
  stream->work.emplace_back(std::move(work));
  return cudaSuccess;
}

void run_ahead(cudaStream_t of) {
  for (CUstream_st& stream : streams) {
    if (&stream != of) {
      drain(&stream, given(&stream));
    }
  }
}

extern "C" {
cudaError_t cudaGetDevice(int* gpu) {
  *gpu = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int gpu) {
  current = gpu;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = &streams.emplace_back(CUstream_st{current, {}});
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (fails()) {
    return failed();
  }
  drain(stream, given(stream));
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  *out = new CUevent_st{current};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (fails()) {
    return failed();
  }
  if (event->gpu != stream->gpu) {
    return refused();
  }
  event->stream = stream;
  event->after = given(stream);
  return cudaSuccess;
}
// Waits for the current recording of the event, even if it is recorded again later.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (fails()) {
    return failed();
  }
  if (CUstream_st* const other = event->stream) {
    stream->work.emplace_back([other, after = event->after] { drain(other, after); });
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  return enqueue(stream, [=] { std::memcpy(to, from, size); });
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  if (fails()) {
    return failed();
  }
  return posix_memalign(out, 64, size) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* pointer) {
  run_ahead(nullptr);  // all of them
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, size_t size) { return cudaHostAlloc(out, size, 0); }
cudaError_t cudaFree(void* pointer) { return cudaFreeHost(pointer); }
cudaError_t cudaGetLastError() {
  const cudaError_t found = last;
  last = cudaSuccess;
  return found;
}
const char* cudaGetErrorString(cudaError_t) { return "refused"; }
}
