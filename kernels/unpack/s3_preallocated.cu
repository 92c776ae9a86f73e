// Device memory is allocated once; the order of the stream lets every block use the same.
#include "../common/memory.h"
#include "kernel.h"

namespace {

class Preallocated : public Path {
 public:
  explicit Preallocated(const Receive& receive)
      : receive_(receive), copied_(on_device<DescriptorBlock>(1)) {}

  // The driver may wait where it has no more room for what it copies from pageable memory.
  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        check(cudaMemcpyAsync(copied_.get(), &block, sizeof(block), cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        parts.book(kCopy);
        enqueue<ByWidth>(receive_, copied_[0].descriptors, block.count, block.bytes, stream);
        parts.book(kLaunch);
      }
    }
  }

 private:
  const Receive& receive_;
  std::shared_ptr<DescriptorBlock[]> copied_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<Preallocated>(receive);
}
