// As kernel parameters, but fragments that are neighbours on both sides first become one.
#include "parameters.h"

namespace {

constexpr uint32_t kMostHeldBack = 16;  // launches a stream that is held back surely takes

// Whether `next` goes on where `run` ends, and the two are not too long for one.
bool continues(const Descriptor& run, const Descriptor& next) {
  return uint64_t{run.src_off} + run.len == next.src_off && run.dst_off + run.len == next.dst_off &&
         uint64_t{run.len} + next.len <= LONGEST_FRAGMENT;
}

class Coalesced : public Path {
 public:
  explicit Coalesced(const Receive& receive) : receive_(receive), loader_(receive) {}

  bool waits() const override { return receive_.descriptors > kMost * kMostHeldBack; }

  void unpack(cudaStream_t stream, Parts& parts) override {
    Descriptor run{};
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        for (uint32_t i = 0; i < block.count; ++i) {
          const Descriptor& next = block.descriptors[i];
          if (run.len != 0 && continues(run, next)) {
            run.len += next.len;
            continue;
          }
          if (run.len != 0) {
            loader_.add(run, stream);
          }
          run = next;
        }
      }
    }
    loader_.add(run, stream);
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
  return std::make_unique<Coalesced>(receive);
}
