// A CUDA runtime of host memory and no GPU, for the host code of variants: what is enqueued on a
// stream happens when somebody waits for it, and no earlier. Kernels it does not have.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

namespace {
// The work of each stream that is not done yet, and the stream that each event was recorded on.
std::map<cudaStream_t, std::deque<std::function<void()>>> queues;
std::map<cudaEvent_t, cudaStream_t> recorded;

void drain(cudaStream_t stream) {
  while (!queues[stream].empty()) {
    const std::function<void()> work = std::move(queues[stream].front());
    queues[stream].pop_front();
    work();
  }
}
}  // namespace

int copies_until_failure = -1;  // none fails
cudaError_t last_error = cudaSuccess;
cudaError_t event_status = cudaSuccess;

extern "C" {
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (copies_until_failure >= 0 && copies_until_failure-- == 0) {
    return cudaErrorInvalidValue;
  }
  queues[stream].push_back([=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  queues[stream].push_back([=] { std::memset(to, value, size); });
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
// An event stands for all that was enqueued before: waiting for more than that does no harm.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  recorded[event] = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  queues[stream].push_back([other = recorded.at(event)] { drain(other); });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto found = recorded.find(event); found != recorded.end()) {
    drain(found->second);
  }
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return event_status; }
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
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 8;  // SMs
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t) { return "no error"; }
}
