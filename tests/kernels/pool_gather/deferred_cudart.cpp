// A CUDA runtime of host memory and no GPU, for the host code of variants: what is enqueued on a
// stream happens when somebody waits for it, and no earlier. Kernels it does not have.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

namespace {
// The work of each stream that is not done yet, and how much is.
struct Queue {
  std::deque<std::function<void()>> work;
  size_t done = 0;
};
std::map<cudaStream_t, Queue> queues;

// What an event stands for: so much work of the stream that it was recorded on.
struct Recorded {
  cudaStream_t stream;
  size_t work;
};
std::map<cudaEvent_t, Recorded> recorded;

size_t enqueued(const Queue& queue) { return queue.done + queue.work.size(); }

void enqueue(cudaStream_t stream, std::function<void()> work) {
  queues[stream].work.push_back(std::move(work));
}

void drain(cudaStream_t stream, size_t until) {
  Queue& queue = queues[stream];
  while (queue.done < until && !queue.work.empty()) {
    const std::function<void()> work = std::move(queue.work.front());
    queue.work.pop_front();
    ++queue.done;
    work();
  }
}

void drain(cudaStream_t stream) { drain(stream, enqueued(queues[stream])); }
}  // namespace

extern "C" {
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  enqueue(stream, [=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  drain(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = static_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  drain(stream);
  queues.erase(stream);
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  *out = static_cast<cudaEvent_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  recorded.erase(event);
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  recorded[event] = {stream, enqueued(queues[stream])};
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  enqueue(stream, [other = recorded.at(event)] { drain(other.stream, other.work); });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto found = recorded.find(event); found != recorded.end()) {
    drain(found->second.stream, found->second.work);
  }
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  return posix_memalign(out, 64, size) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* pointer) {
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
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "no error"; }
}
