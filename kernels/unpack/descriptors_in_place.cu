// All chunks in one launch, whose kernel reads the descriptors where they are: in pinned memory.
#include "batch.h"
#include "kernel.h"

namespace {

class InPlace : public Path {
 public:
  explicit InPlace(const Receive& receive)
      : receive_(receive), gathered_(page_locked<Descriptor>(receive.descriptors)) {}

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    gather_descriptors(receive_, gathered_.get());
    parts.book(kBatch);
    enqueue<ByWidth>(receive_, gathered_.get(), receive_.descriptors, receive_.bytes, stream);
    parts.book(kLaunch);
  }

 private:
  const Receive& receive_;
  std::shared_ptr<Descriptor[]> gathered_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<InPlace>(receive);
}
