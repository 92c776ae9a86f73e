// Batched calls with one entry per piece of a list.
#pragma once

#include <algorithm>
#include <vector>

#include "places.h"

class ListBatch : public ListMethod {
 public:
  explicit ListBatch(const Pieces& moved)
      : ListMethod(moved), sizes_(static_cast<size_t>(pieces.count), pieces.size) {
    for (int64_t i = 0; i < pieces.count; ++i) {
      from_.push_back(from_at(i));
      to_.push_back(to_at(i));
    }
  }

 protected:
  // One call for `count` pieces, the first of which is `first`.
  void copy(size_t first, size_t count, cudaStream_t stream) {
#if CUDART_VERSION >= 12080
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t applies_from = 0;
#if CUDART_VERSION >= 13000
    const cudaError_t status =
        cudaMemcpyBatchAsync(to_.data() + first, from_.data() + first, sizes_.data() + first, count,
                             &attributes, &applies_from, 1, stream);
#else
    size_t failed = 0;
    const cudaError_t status = cudaMemcpyBatchAsync(
        to_.data() + first, const_cast<void**>(from_.data() + first), sizes_.data() + first, count,
        &attributes, &applies_from, 1, &failed, stream);
#endif
    check(status, "cudaMemcpyBatchAsync");
#else
    (void)first, (void)count, (void)stream;
    throw std::runtime_error("cudaMemcpyBatchAsync needs CUDA 12.8 or newer");
#endif
  }
  void copy_all(cudaStream_t stream) { copy(0, sizes_.size(), stream); }

 private:
  std::vector<const void*> from_;
  std::vector<void*> to_;
  std::vector<size_t> sizes_;
};
