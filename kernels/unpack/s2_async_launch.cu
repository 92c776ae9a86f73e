// The host waits once, after the last chunk, and frees all device memory after that.
#include "kernel.h"
#include "stateless.h"

void StatelessPath::unpack(cudaStream_t stream, PartTimer& timer) {
  // cudaFree waits for the device, so freeing inside the loop would wait for every chunk.
  std::vector<DescriptorBlock*> in_use;
  for (const Chunk& chunk : receive_.chunks) {
    DescriptorBlock* on_gpu;
    check(cudaMalloc(&on_gpu, sizeof(DescriptorBlock)), "cudaMalloc");
    in_use.push_back(on_gpu);
    timer.lap(kMalloc);
    for (const DescriptorBlock& block : chunk) {
      check(cudaMemcpyAsync(on_gpu, &block, sizeof(block), cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
      timer.lap(kCopy);
      enqueue<WidestAccess>(receive_, on_gpu->descriptors, block.count, block.bytes, stream);
      timer.lap(kLaunch);
    }
  }
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  timer.lap(kWait);
  for (DescriptorBlock* on_gpu : in_use) {
    check(cudaFree(on_gpu), "cudaFree");
  }
  timer.lap(kFree);
}
