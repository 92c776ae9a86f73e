// Reuse across streams on a GPU: allocator_gpu ITERATIONS
//
// Each block is filled on one stream and read on another, late, after it has been freed. If it is
// handed out before its reader is through, the next fill changes what that reads.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "allocator.h"
#include "driver_source.h"

namespace {

constexpr int kThreads = 256, kBlocks = 8;

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

int main(int, char** arguments) {
  DriverSource source;
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  cudaStream_t writer, reader;
  for (cudaStream_t* stream : {&writer, &reader}) {
    check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "stream");
  }
  cudaEvent_t filled;
  check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming), "event");
  unsigned long long* changed;
  check(cudaMalloc(&changed, sizeof *changed), "counter");
  check(cudaMemset(changed, 0, sizeof *changed), "counter");
  const Place owner{0, reinterpret_cast<Stream>(writer)};
  allocator->set_limit(0, size_t{256} << 20);
  std::mt19937 random(1);
  for (uint32_t tag = 1; tag <= uint32_t(std::atoi(arguments[1])); ++tag) {
    // Few sizes, so that blocks come back at once where nothing holds them.
    const size_t count = size_t{1} << (10 + random() % 10);
    auto* words = static_cast<uint32_t*>(allocator->allocate(count * sizeof tag, owner));
    fill<<<kBlocks, kThreads, 0, writer>>>(words, count, tag);
    check(cudaEventRecord(filled, writer), "filled");
    check(cudaStreamWaitEvent(reader, filled), "filled");
    allocator->record_stream(words, {0, reinterpret_cast<Stream>(reader)});
    read_late<<<kBlocks, kThreads, 0, reader>>>(words, count, tag, 20000 + random() % 20000,
                                                changed);
    check(cudaGetLastError(), "launch");
    allocator->deallocate(words, owner);
  }
  check(cudaDeviceSynchronize(), "kernels");
  unsigned long long found = 0;
  check(cudaMemcpy(&found, changed, sizeof found, cudaMemcpyDeviceToHost), "counter");
  std::printf("%llu words changed before they were read\n", found);
  return found == 0 ? 0 : 1;
}
