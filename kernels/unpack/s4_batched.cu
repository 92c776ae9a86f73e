// All chunks in one batch: their descriptors gathered in pinned memory, one copy, one launch.
#include "batch.h"
#include "kernel.h"

namespace {

class Batched : public Path {
 public:
  explicit Batched(const Receive& receive)
      : receive_(receive),
        gathered_(pinned_descriptors(receive.descriptors)),
        copied_(device_descriptors(receive.descriptors)) {}

  ~Batched() override {
    cudaFreeHost(gathered_);
    cudaFree(copied_);
  }

  bool waits() const override { return false; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    const uint32_t count = receive_.descriptors;
    gather_descriptors(receive_, gathered_);
    parts.book(kBatch);
    check(cudaMemcpyAsync(copied_, gathered_, count * sizeof(Descriptor), cudaMemcpyHostToDevice,
                          stream),
          "cudaMemcpyAsync");
    parts.book(kCopy);
    enqueue<ByWidth>(receive_, copied_, count, receive_.bytes, stream);
    parts.book(kLaunch);
  }

 private:
  const Receive& receive_;
  Descriptor* gathered_;
  Descriptor* copied_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<Batched>(receive);
}
