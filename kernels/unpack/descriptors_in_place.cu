// One launch for all chunks, whose kernel reads the descriptors from pinned host memory.
#include "batch.h"
#include "kernel.h"

namespace {

class InPlace : public Path {
 public:
  explicit InPlace(const Receive& receive)
      : receive_(receive), gathered_(pinned<Descriptor>(receive.descriptors)) {}

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, PartTimer& timer) override {
    gather_descriptors(receive_, gathered_.get());
    timer.lap(kBatch);
    enqueue<WidestAccess>(receive_, gathered_.get(), receive_.descriptors, receive_.bytes, stream);
    timer.lap(kLaunch);
  }

 private:
  const Receive& receive_;
  std::shared_ptr<Descriptor[]> gathered_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<InPlace>(receive);
}
