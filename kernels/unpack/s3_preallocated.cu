// Device memory is allocated once; the order of the stream lets every block use the same.
#include "kernel.h"

namespace {

class Preallocated : public Path {
 public:
  explicit Preallocated(const Receive& receive) : receive_(receive) {
    check(cudaMalloc(&copied_, sizeof(DescriptorBlock)), "cudaMalloc");
  }

  ~Preallocated() override { cudaFree(copied_); }

  // The driver may wait where it has no more room for what it copies from pageable memory.
  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        check(cudaMemcpyAsync(copied_, &block, sizeof(block), cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        parts.book(kCopy);
        enqueue<ByWidth>(receive_, copied_->descriptors, block.count, block.bytes, stream);
        parts.book(kLaunch);
      }
    }
  }

 private:
  const Receive& receive_;
  DescriptorBlock* copied_ = nullptr;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<Preallocated>(receive);
}
