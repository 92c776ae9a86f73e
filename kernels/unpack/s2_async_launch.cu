// Nothing is waited for before the last chunk; device memory is given back after that.
#include "kernel.h"

namespace {

class AsyncLaunch : public Path {
 public:
  explicit AsyncLaunch(const Receive& receive) : receive_(receive) {}

  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    // Freed within the loop, it would be waited for: cudaFree waits for the device.
    std::vector<DescriptorBlock*> in_use;
    for (const Chunk& chunk : receive_.chunks) {
      DescriptorBlock* copied;
      check(cudaMalloc(&copied, sizeof(DescriptorBlock)), "cudaMalloc");
      in_use.push_back(copied);
      parts.book(kMalloc);
      for (const DescriptorBlock& block : chunk) {
        check(cudaMemcpyAsync(copied, &block, sizeof(block), cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        parts.book(kCopy);
        enqueue<ByWidth>(receive_, copied->descriptors, block.count, block.bytes, stream);
        parts.book(kLaunch);
      }
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    parts.book(kWait);
    for (DescriptorBlock* copied : in_use) {
      check(cudaFree(copied), "cudaFree");
    }
    parts.book(kFree);
  }

 private:
  const Receive& receive_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<AsyncLaunch>(receive);
}
