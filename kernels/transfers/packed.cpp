// The CPU packs pieces into pinned staging memory, and one copy moves them all.
#pragma once

#include <cstring>

#include "transfer.h"

class Packed : public Method {
 public:
  explicit Packed(const Pieces& moved) : Method(moved) {
    check(cudaHostAlloc(&staging_, static_cast<size_t>(pieces.bytes()), cudaHostAllocDefault),
          "cudaHostAlloc");
  }
  ~Packed() override { cudaFreeHost(staging_); }

  void launch(cudaStream_t stream) override {
    uint8_t* staging = static_cast<uint8_t*>(staging_);
    const size_t size = static_cast<size_t>(pieces.size);
    if (pieces.to_device) {
      for (int64_t i = 0; i < pieces.count; ++i) {
        std::memcpy(staging + i * pieces.size, pieces.on_host(i), size);
      }
      copy(pieces.device, staging, stream);
      return;
    }
    copy(staging, pieces.device, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (int64_t i = 0; i < pieces.count; ++i) {
      std::memcpy(pieces.on_host(i), staging + i * pieces.size, size);
    }
  }

 private:
  void copy(void* to, const void* from, cudaStream_t stream) const {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(pieces.bytes()), pieces.kind(), stream),
          "cudaMemcpyAsync");
  }

  void* staging_ = nullptr;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Packed>(pieces); }
