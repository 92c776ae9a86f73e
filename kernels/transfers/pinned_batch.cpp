// One batched call with one entry per piece.
#include <vector>

#include "transfer.h"

const Memory kMemory = Memory::kPinned;

class Batch : public Method {
 public:
  explicit Batch(const Pieces& moved)
      : Method(moved), sizes_(static_cast<size_t>(pieces.count), pieces.size) {
    for (int64_t i = 0; i < pieces.count; ++i) {
      from_.push_back(pieces.from(i));
      to_.push_back(pieces.to(i));
    }
  }

  void launch(cudaStream_t stream) override {
#if CUDART_VERSION >= 12080
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
#if CUDART_VERSION >= 13000
    const cudaError_t status = cudaMemcpyBatchAsync(to_.data(), from_.data(), sizes_.data(),
                                                    sizes_.size(), &attributes, &first, 1, stream);
#else
    size_t failed = 0;
    const cudaError_t status =
        cudaMemcpyBatchAsync(to_.data(), const_cast<void**>(from_.data()), sizes_.data(),
                             sizes_.size(), &attributes, &first, 1, &failed, stream);
#endif
    check(status, "cudaMemcpyBatchAsync");
#else
    (void)stream;
    throw std::runtime_error("cudaMemcpyBatchAsync needs CUDA 12.8 or newer");
#endif
  }

 private:
  std::vector<const void*> from_;
  std::vector<void*> to_;
  std::vector<size_t> sizes_;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Batch>(pieces); }
