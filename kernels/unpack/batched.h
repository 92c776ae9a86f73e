// The path of variants that launch once for the batch of all chunks. They define its `unpack`.
#pragma once

#include "batch.h"
#include "kernel.h"

namespace {

// Never waits for the GPU.
class BatchedPath : public Path {
 public:
  explicit BatchedPath(const Receive& receive) : receive_(receive), batch_(receive) {}

  inline void unpack(cudaStream_t stream, PartTimer& timer) override;
  bool waits() const override { return false; }

 private:
  const Receive& receive_;
  DescriptorBatch batch_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<BatchedPath>(receive);
}
