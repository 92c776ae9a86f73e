// A CUDA runtime of several GPUs that are not there. Work on a stream happens when somebody waits
// for it, and no earlier; what is given to a stream while another GPU than its own is current, or
// an event to a stream of another GPU, is refused.
#include "several_gpus.h"

#include <cuda_runtime.h>

#include <cstring>
#include <deque>
#include <functional>
#include <set>

struct CUstream_st {
  int gpu;
  std::deque<std::function<void()>> work;
  int done = 0;
};

struct CUevent_st {
  int gpu;
  CUstream_st* stream = nullptr;
  int after = 0;  // so much work of the stream
};

namespace {
int current = 0;
cudaError_t last = cudaSuccess;
std::set<cudaStream_t> streams;

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
}  // namespace

void run_ahead(cudaStream_t of) {
  for (cudaStream_t stream : streams) {
    if (stream != of) {
      drain(stream, given(stream));
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
  *out = new CUstream_st{current, {}};
  streams.insert(*out);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
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
  if (event->gpu != stream->gpu) {
    return refused();
  }
  event->stream = stream;
  event->after = given(stream);
  return cudaSuccess;
}
// What the event stands for now, even if it is recorded again.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (CUstream_st* const other = event->stream) {
    stream->work.emplace_back([other, after = event->after] { drain(other, after); });
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (stream->gpu != current) {
    return refused();
  }
  stream->work.emplace_back([=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t found = last;
  last = cudaSuccess;
  return found;
}
const char* cudaGetErrorString(cudaError_t) { return "refused"; }
}
