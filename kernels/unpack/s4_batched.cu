// All chunks in one batch: their descriptors gathered in pinned memory, one copy, one launch.
#include "batch.h"
#include "kernel.h"

namespace {

class Batched : public Path {
 public:
  explicit Batched(const Receive& receive) : receive_(receive), batch_(receive) {}

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    batch_.gather();
    parts.book(kBatch);
    batch_.copy(stream);
    parts.book(kCopy);
    enqueue<ByWidth>(receive_, batch_.on_gpu(), receive_.descriptors, receive_.bytes, stream);
    parts.book(kLaunch);
  }

 private:
  const Receive& receive_;
  DescriptorBatch batch_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<Batched>(receive);
}
