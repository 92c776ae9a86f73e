// The descriptors of all chunks, one behind the other, in pinned memory.
#pragma once

#include <cstring>

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

// Room for `count` descriptors in pinned memory, which the caller frees by cudaFreeHost, or in
// device memory, by cudaFree. They throw std::runtime_error where there is none.
inline Descriptor* pinned_descriptors(uint32_t count) {
  void* allocated = nullptr;
  check(cudaHostAlloc(&allocated, count * sizeof(Descriptor), cudaHostAllocMapped),
        "cudaHostAlloc");
  return static_cast<Descriptor*>(allocated);
}

inline Descriptor* device_descriptors(uint32_t count) {
  void* allocated = nullptr;
  check(cudaMalloc(&allocated, count * sizeof(Descriptor)), "cudaMalloc");
  return static_cast<Descriptor*>(allocated);
}
