// All chunks use one stream; each gets new device memory, and the host waits for it.
#include "kernel.h"
#include "stateless.h"

void StatelessPath::unpack(cudaStream_t stream, PartTimer& timer) {
  for (const Chunk& chunk : receive_.chunks) {
    DescriptorBlock* on_gpu;
    check(cudaMalloc(&on_gpu, sizeof(DescriptorBlock)), "cudaMalloc");
    timer.lap(kMalloc);
    for (const DescriptorBlock& block : chunk) {
      check(cudaMemcpyAsync(on_gpu, &block, sizeof(block), cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
      timer.lap(kCopy);
      enqueue<WidestAccess>(receive_, on_gpu->descriptors, block.count, block.bytes, stream);
      timer.lap(kLaunch);
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      timer.lap(kWait);
    }
    check(cudaFree(on_gpu), "cudaFree");
    timer.lap(kFree);
  }
}
