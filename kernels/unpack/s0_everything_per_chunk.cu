// Each chunk has a stream and device memory of its own, and is waited for.
#include "kernel.h"

namespace {

class EverythingPerChunk : public Path {
 public:
  explicit EverythingPerChunk(const Receive& receive) : receive_(receive) {}

  bool waits() const override { return true; }

  void unpack(cudaStream_t /*stream*/, Parts& parts) override {
    for (const Chunk& chunk : receive_.chunks) {
      cudaStream_t stream;
      check(cudaStreamCreate(&stream), "cudaStreamCreate");
      parts.book(kCreate);
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
      check(cudaStreamDestroy(stream), "cudaStreamDestroy");
      parts.book(kDestroy);
    }
  }

 private:
  const Receive& receive_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<EverythingPerChunk>(receive);
}
