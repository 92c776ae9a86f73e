// Each thread writes one element.
#include "operation.h"

constexpr int kThreads = 256;

__global__ void fill_scalar(float* dst, int64_t count, float value) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    dst[i] = value;
  }
}

cudaError_t launch(const Fill& fill, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((fill.count + kThreads - 1) / kThreads);
  fill_scalar<<<blocks, kThreads, 0, stream>>>(fill.dst, fill.count, fill.value);
  return cudaGetLastError();
}
