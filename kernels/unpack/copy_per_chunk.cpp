// One device-to-device copy a chunk, of as many contiguous bytes.
#include "contiguous.h"

namespace {

constexpr size_t kMostHeldBack = 16;  // copies a stream that is held back surely takes

class CopyPerChunk : public Path {
 public:
  explicit CopyPerChunk(const Receive& receive) : receive_(receive), ends_(ends_of(receive)) {}

  bool waits() const override { return receive_.chunks.size() > kMostHeldBack; }

  void unpack(cudaStream_t stream, Parts& /*parts*/) override {
    uint64_t offset = 0;
    for (const Chunk& chunk : receive_.chunks) {
      uint64_t bytes = 0;
      for (const DescriptorBlock& block : chunk) {
        bytes += block.bytes;
      }
      check(cudaMemcpyAsync(ends_.dst + offset, ends_.src + offset, bytes, cudaMemcpyDeviceToDevice,
                            stream),
            "cudaMemcpyAsync");
      offset += bytes;
    }
  }

 private:
  const Receive& receive_;
  Ends ends_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<CopyPerChunk>(receive);
}
