// All chunks in one launch that brings its descriptors along as kernel parameters.
#include "parameters.h"

namespace {

constexpr uint32_t kMostHeldBack = 16;  // launches a stream that is held back surely takes

class KernelParameters : public Path {
 public:
  explicit KernelParameters(const Receive& receive) : receive_(receive), loader_(receive) {}

  bool waits() const override { return receive_.descriptors > kMost * kMostHeldBack; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        for (uint32_t i = 0; i < block.count; ++i) {
          loader_.add(block.descriptors[i], stream);
        }
      }
    }
    parts.book(kBatch);
    loader_.launch(stream);
    parts.book(kLaunch);
  }

 private:
  const Receive& receive_;
  Loader<ByWidth> loader_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<KernelParameters>(receive);
}
