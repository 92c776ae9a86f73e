// The descriptors of all chunks in one array.
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

// Gathers the descriptors of a receive in pinned memory and copies them to device memory at once.
// It owns both arrays; the receive outlives it.
class DescriptorBatch {
 public:
  explicit DescriptorBatch(const Receive& receive)
      : receive_(receive),
        gathered_(pinned<Descriptor>(receive.descriptors)),
        copied_(on_device<Descriptor>(receive.descriptors)) {}

  void gather() { gather_descriptors(receive_, gathered_.get()); }

  // Enqueues the copy of the gathered descriptors.
  void copy(cudaStream_t stream) {
    check(cudaMemcpyAsync(copied_.get(), gathered_.get(), receive_.descriptors * sizeof(Descriptor),
                          cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
  }

  // Gathers and copies, each with a lap of the timer.
  void send(cudaStream_t stream, PartTimer& timer) {
    gather();
    timer.lap(kBatch);
    copy(stream);
    timer.lap(kCopy);
  }

  const Descriptor* on_gpu() const { return copied_.get(); }

 private:
  const Receive& receive_;
  std::shared_ptr<Descriptor[]> gathered_;
  std::shared_ptr<Descriptor[]> copied_;
};
