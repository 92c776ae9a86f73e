// A CUDA runtime without a GPU, whose copies run immediately in host memory. Tests run the host
// code of variants with it; it has no kernels.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {
std::vector<std::function<void()>>* captured = nullptr;

void move(std::function<void()> copy) {
  if (captured != nullptr) {
    captured->push_back(std::move(copy));
  } else {
    copy();
  }
}
}  // namespace

extern "C" {
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t) {
  move([=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t) {
  move([=] { std::memset(to, value, size); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t) {
  for (size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes*, size_t*, size_t,
                                 cudaStream_t) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to[i], from[i], sizes[i]);
  }
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  *out = std::malloc(size);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* out) {
  *out = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) { return cudaEventCreate(out); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
// The same time between any two events.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 250;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  captured = new std::vector<std::function<void()>>;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* out) {
  *out = reinterpret_cast<cudaGraph_t>(captured);
  captured = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* out, unsigned) {
  *out = reinterpret_cast<cudaGraph_t>(new std::vector<std::function<void()>>);
  return cudaSuccess;
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t graph,
                                     const cudaGraphNode_t*, size_t, void* to, const void* from,
                                     size_t size, cudaMemcpyKind) {
  auto* copies = reinterpret_cast<std::vector<std::function<void()>>*>(graph);
  copies->push_back([=] { std::memcpy(to, from, size); });
  *out = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  *out = reinterpret_cast<cudaGraphExec_t>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<std::vector<std::function<void()>>*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const auto& copy : *reinterpret_cast<std::vector<std::function<void()>>*>(graph)) {
    copy();
  }
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "no error"; }
}
