// Reuse across streams on the GPU: allocator_canary ITERATIONS
//
// Each block is filled on stream A and read on stream B, late, after it has been freed. Were it
// handed out before B is through, the next fill on A would change what B reads.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "allocator.h"
#include "driver_source.h"

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 8;

__global__ void fill(uint32_t* words, size_t count, uint32_t tag) {
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    words[i] = tag;
  }
}

__global__ void read_late(const uint32_t* words, size_t count, uint32_t tag, int64_t cycles,
                          unsigned long long* changed) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    if (__ldcg(words + i) != tag) {
      atomicAdd(changed, 1ull);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int iterations = count > 1 ? std::atoi(arguments[1]) : 10000;
  DriverSource source;
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  cudaStream_t a, b;
  check(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), "stream a");
  check(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), "stream b");
  cudaEvent_t filled;
  check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming), "event");
  unsigned long long* changed;
  check(cudaMalloc(&changed, sizeof *changed), "counter");
  check(cudaMemset(changed, 0, sizeof *changed), "counter");
  const Place on_a{0, reinterpret_cast<Stream>(a)};
  const Place on_b{0, reinterpret_cast<Stream>(b)};
  allocator->set_limit(0, size_t{256} << 20);
  std::mt19937 random(1);
  for (int i = 0; i < iterations; ++i) {
    // Few sizes, so that blocks come back at once where nothing holds them.
    const size_t bytes = size_t{1} << (12 + random() % 10);
    const uint32_t tag = 1 + uint32_t(i);
    auto* words = static_cast<uint32_t*>(allocator->allocate(bytes, on_a));
    fill<<<kBlocks, kThreads, 0, a>>>(words, bytes / sizeof *words, tag);
    check(cudaEventRecord(filled, a), "filled");
    check(cudaStreamWaitEvent(b, filled), "filled");
    allocator->record_stream(words, on_b);
    read_late<<<kBlocks, kThreads, 0, b>>>(words, bytes / sizeof *words, tag,
                                           20000 + random() % 20000, changed);
    check(cudaGetLastError(), "launch");
    allocator->deallocate(words, on_a);
  }
  check(cudaDeviceSynchronize(), "kernels");
  unsigned long long found = 0;
  check(cudaMemcpy(&found, changed, sizeof found, cudaMemcpyDeviceToHost), "counter");
  std::printf("%d iterations, %llu words changed before they were read\n", iterations, found);
  return found == 0 ? 0 : 1;
}
