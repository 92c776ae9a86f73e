// One device-to-device copy a fragment.
#include "operator.h"

namespace {

class CopyPerFragment : public Path {
 public:
  explicit CopyPerFragment(const Receive& receive) : receive_(receive) {}

  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, Parts& /*parts*/) override {
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        for (uint32_t i = 0; i < block.count; ++i) {
          const Descriptor& fragment = block.descriptors[i];
          check(cudaMemcpyAsync(receive_.dst + fragment.dst_off, receive_.bounce + fragment.src_off,
                                fragment.len, cudaMemcpyDeviceToDevice, stream),
                "cudaMemcpyAsync");
        }
      }
    }
  }

 private:
  const Receive& receive_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<CopyPerFragment>(receive);
}
