// One cudaMemcpyBatchAsync of all chunks, with an entry a fragment.
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

  void unpack(cudaStream_t stream, Parts& /*parts*/) override {
#if CUDART_VERSION >= 12080
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
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
#if CUDART_VERSION >= 13000
    check(cudaMemcpyBatchAsync(destinations_.data(), sources_.data(), sizes_.data(), sizes_.size(),
                               &attributes, &first, 1, stream),
          "cudaMemcpyBatchAsync");
#else
    size_t failed = 0;
    check(
        cudaMemcpyBatchAsync(destinations_.data(), const_cast<void**>(sources_.data()),
                             sizes_.data(), sizes_.size(), &attributes, &first, 1, &failed, stream),
        "cudaMemcpyBatchAsync");
#endif
#else
    throw std::runtime_error("cudaMemcpyBatchAsync needs CUDA 12.8 or newer");
#endif
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
