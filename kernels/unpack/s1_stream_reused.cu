// One stream for all chunks; each has device memory of its own, and is waited for.
#include "kernel.h"

namespace {

class StreamReused : public Path {
 public:
  explicit StreamReused(const Receive& receive) : receive_(receive) {}

  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    for (const Chunk& chunk : receive_.chunks) {
      DescriptorBlock* copied;
      check(cudaMalloc(&copied, sizeof(DescriptorBlock)), "cudaMalloc");
      parts.book(kMalloc);
      for (const DescriptorBlock& block : chunk) {
        check(cudaMemcpyAsync(copied, &block, sizeof(block), cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        parts.book(kCopy);
        enqueue<ByWidth>(receive_, copied->descriptors, block.count, block.bytes, stream);
        parts.book(kLaunch);
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        parts.book(kWait);
      }
      check(cudaFree(copied), "cudaFree");
      parts.book(kFree);
    }
  }

 private:
  const Receive& receive_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<StreamReused>(receive);
}
