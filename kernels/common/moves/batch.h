// Batched calls with one entry per piece.
#pragma once

#include "../batch_copy.h"
#include "transfer.h"

// One call for `count` pieces, the first of which is `first`.
class BatchedCall {
 public:
  BatchedCall(const Pieces& pieces, int64_t first, int64_t count)
      : sizes_(static_cast<size_t>(count), static_cast<size_t>(pieces.size)) {
    for (int64_t i = first; i < first + count; ++i) {
      from_.push_back(pieces.from(i));
      to_.push_back(pieces.to(i));
    }
  }

  void enqueue(cudaStream_t stream) {
    check(copy_batch(to_, from_, sizes_, stream), "cudaMemcpyBatchAsync");
  }

 private:
  std::vector<const void*> from_;
  std::vector<void*> to_;
  std::vector<size_t> sizes_;
};

// All pieces in one call.
class Batch : public Method {
 public:
  explicit Batch(const Pieces& moved) : Method(moved), all_(pieces, 0, pieces.count) {}

  void launch(cudaStream_t stream) override { all_.enqueue(stream); }

 protected:
  BatchedCall all_;
};
