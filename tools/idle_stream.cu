// On an idle stream, cudaMemcpyBatchAsync copies pieces of up to 24 KiB on the CPU: the call takes
// longer than behind a short kernel, and later changes of the pieces do not arrive. CUDA 13.
//   nvcc idle_stream.cu && ./a.out
// Prints how many of 256 pieces arrive unchanged if the caller changes them all after the call.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

constexpr size_t kPieces = 256, kApart = 64 << 10, kBytes = kPieces * kApart;
__global__ void occupy(int us) {
  while (us-- > 0) __nanosleep(1000);
}

int main() {
  char *host, *gpu, *other, arrived[kPieces];
  cudaStream_t stream, busy;
  cudaStreamCreate(&stream), cudaStreamCreate(&busy);
  cudaHostAlloc(&host, kBytes, 0), cudaMalloc(&gpu, kBytes), cudaMalloc(&other, kBytes);
  cudaMemset(gpu, 0, kBytes);
  std::vector<void*> to, from;
  for (size_t at = 0; at < kBytes; at += kApart) to.push_back(gpu + at), from.push_back(host + at);
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  for (const int kib : {4, 16, 24, 28}) {  // the first warms up
    std::vector<size_t> sizes(kPieces, kib << 10), first(1);
    for (const bool is_idle : {true, false}) {
      for (void* piece : from) *static_cast<char*>(piece) = 1;
      for (int i = 0; i < 40; ++i) cudaMemcpyAsync(other, host, kBytes, cudaMemcpyDefault, busy);
      if (!is_idle) occupy<<<1, 1, 0, stream>>>(20);
      const auto begin = std::chrono::steady_clock::now();
      cudaMemcpyBatchAsync(&to[0], &from[0], &sizes[0], kPieces, &attributes, &first[0], 1, stream);
      const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
      for (void* piece : from) *static_cast<char*>(piece) = 2;
      if (cudaDeviceSynchronize()) return std::puts("error: the copies failed"), 1;
      cudaMemcpy2D(arrived, 1, gpu, kApart, 1, kPieces, cudaMemcpyDefault);
      std::printf("{\"kib\": %d, \"idle\": %d, \"call_us\": %.1f, \"unchanged\": %d}\n", kib,
                  is_idle, us.count(), int(std::count(arrived, arrived + kPieces, 1)));
    }
  }
}
