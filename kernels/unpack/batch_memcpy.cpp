// One cudaMemcpyBatchAsync for all chunks, with one entry per fragment.
#include "../common/batch_copy.h"
#include "operator.h"

namespace {

class BatchMemcpy : public Path {
 public:
  explicit BatchMemcpy(const Receive& receive) : receive_(receive) {
    sources_.reserve(receive.descriptors);
    destinations_.reserve(receive.descriptors);
    sizes_.reserve(receive.descriptors);
  }

  bool waits() const override { return true; }

  void unpack(cudaStream_t stream, PartTimer& /*timer*/) override {
    sources_.clear();
    destinations_.clear();
    sizes_.clear();
    for (const Chunk& chunk : receive_.chunks) {
      for (const DescriptorBlock& block : chunk) {
        for (uint32_t i = 0; i < block.count; ++i) {
          const Descriptor& fragment = block.descriptors[i];
          sources_.push_back(receive_.bounce + fragment.src_off);
          destinations_.push_back(receive_.dst + fragment.dst_off);
          sizes_.push_back(fragment.len);
        }
      }
    }
    check(copy_batch(destinations_, sources_, sizes_, stream), "cudaMemcpyBatchAsync");
  }

 private:
  const Receive& receive_;
  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
  std::vector<size_t> sizes_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<BatchMemcpy>(receive);
}
