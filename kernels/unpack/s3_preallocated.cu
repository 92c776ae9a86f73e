// Device memory is allocated once: stream order lets all blocks share it.
#include "../common/memory.h"
#include "kernel.h"

namespace {

class Preallocated : public Path {
 public:
  explicit Preallocated(const Receive& receive)
      : receive_(receive), on_gpu_(on_device<DescriptorBlock>(1)) {}

  // Copies from pageable memory may wait for room in the driver's staging buffer.
  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, PartTimer& timer) override {
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        check(cudaMemcpyAsync(on_gpu_.get(), &block, sizeof(block), cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        timer.lap(kCopy);
        enqueue<WidestAccess>(receive_, on_gpu_[0].descriptors, block.count, block.bytes, stream);
        timer.lap(kLaunch);
      }
    }
  }

 private:
  const Receive& receive_;
  std::shared_ptr<DescriptorBlock[]> on_gpu_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<Preallocated>(receive);
}
