// A CUDA runtime for tools/reach.cu without a GPU: no kernel runs, and a gather takes the time
// that a made-up GPU would need. The environment describes it, in SI units:
//   HELD translations of COVERS bytes, WALK seconds and DOUBLING more for each doubled pool, a link
//   of LINK bytes per second, PINNABLE bytes of host memory, GAIN of the rate that no model expects
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {
constexpr double kReads = 262144;
const void* gather = nullptr;
cudaError_t last = cudaSuccess;
float gather_ms = 0;

struct Walk {  // as in reach.cu
  uint64_t places, stride, row, turns, lines, first;
};

double given(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}

cudaError_t status(cudaError_t result) {
  last = result == cudaSuccess ? last : result;
  return result;
}

double seconds(const Walk& walk) {
  const double covers = given("COVERS", 65536), held = given("HELD", 4096);
  const double places = static_cast<double>(walk.places), stride = static_cast<double>(walk.stride);
  const double row = static_cast<double>(walk.row), link = row / given("LINK", 50e9);
  const double needed = std::min(places, places * stride / covers);
  if (walk.turns == 0 || needed <= held) {
    return link;
  }
  const double walk_s = given("WALK", 20e-9) + given("DOUBLING", 3e-9) * std::log2(needed / held);
  const double odd = 1 + given("GAIN", 0) * (std::fmod(std::log2(needed) * 2 + 0.5, 2) < 1 ? 1 : 0);
  return std::max(link, (1 - held / needed) * walk_s * (1 + (row - 16) / covers)) * odd;
}
}  // namespace

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  gather = std::strstr(name, "gather") ? function : gather;
}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, cudaStream_t) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return cudaSuccess; }
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void** arguments, size_t,
                             cudaStream_t) {
  if (function == gather) {
    gather_ms = static_cast<float>(seconds(*static_cast<Walk*>(arguments[2])) * kReads * 1e3);
  }
  return status(std::getenv("NO_KERNELS") ? cudaErrorNoKernelImageForDevice : cudaSuccess);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* gpu, int) {
  std::memset(gpu, 0, sizeof *gpu);
  std::strcpy(gpu->name, "NVIDIA Made-up");
  gpu->major = 9;
  gpu->l2CacheSize = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, size_t size, unsigned) {
  *out = &gather_ms;
  return status(size > given("PINNABLE", 1e15) ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaMalloc(void** out, size_t) {
  *out = &gather_ms;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* out) {
  *out = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = gather_ms;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
}
