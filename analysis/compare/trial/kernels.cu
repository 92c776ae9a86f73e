// Six kernels whose times NVBench takes repeatedly, for comparisons of identical programs.

extern "C" __global__ void fma_chain(float* out, long long loops) {
  // A thread owns one chain of dependent operations.
  float value = threadIdx.x;
  for (long long loop = 0; loop < loops; ++loop) value = value * 0.999f + 1.0f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

extern "C" __global__ void copy(const float4* in, float4* out, long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride)
    out[at] = in[at];
}

extern "C" __global__ void sum(const float4* in, float* out, long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  float total = 0;
  for (long long at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride)
    total += in[at].x + in[at].y + in[at].z + in[at].w;
  for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_down_sync(~0u, total, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(out, total);
}

extern "C" __global__ void gather(const int* rows, const float4* table, float4* out,
                                  long long count) {
  // A row of 128 bytes belongs to eight threads.
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = blockIdx.x * blockDim.x + threadIdx.x; at < count * 8; at += stride)
    out[at] = table[rows[at / 8] * 8LL + at % 8];
}

extern "C" __global__ void histogram(const int* values, int* bins, long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride)
    atomicAdd(&bins[values[at] & 1023], 1);
}
