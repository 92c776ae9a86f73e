// The descriptors of all chunks, one behind the other.
#pragma once

#include <cstring>
#include <memory>

#include "../common/memory.h"
#include "operator.h"

// Writes the used descriptors of every block to `out`, in order.
inline void gather_descriptors(const Receive& receive, Descriptor* out) {
  for (const Chunk& chunk : receive.chunks) {
    for (const DescriptorBlock& block : chunk) {
      std::memcpy(out, block.descriptors, block.count * sizeof(Descriptor));
      out += block.count;
    }
  }
}

// Gathers the descriptors of a receive, which outlives it, in pinned memory, and copies them to
// device memory in one piece. It owns both.
class DescriptorBatch {
 public:
  explicit DescriptorBatch(const Receive& receive)
      : receive_(receive),
        gathered_(page_locked<Descriptor>(receive.descriptors)),
        copied_(on_device<Descriptor>(receive.descriptors)) {}

  void gather() { gather_descriptors(receive_, gathered_.get()); }

  // Enqueues the copy of what is gathered by then.
  void copy(cudaStream_t stream) {
    check(cudaMemcpyAsync(copied_.get(), gathered_.get(), receive_.descriptors * sizeof(Descriptor),
                          cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
  }

  const Descriptor* on_gpu() const { return copied_.get(); }

 private:
  const Receive& receive_;
  std::shared_ptr<Descriptor[]> gathered_;
  std::shared_ptr<Descriptor[]> copied_;
};
