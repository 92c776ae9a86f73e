// The calling thread packs the pieces into pinned staging memory, and one copy moves them all.
#include <cstring>

#include "../common/memory.h"
#include "../common/moves/transfer.h"

class Packed : public Method {
 public:
  explicit Packed(const Pieces& moved) : Method(moved) { pieces.require_packed_device(); }

  void launch(cudaStream_t stream) override {
    if (pieces.to_device) {
      for (int64_t i = 0; i < pieces.count; ++i) {
        std::memcpy(staged(i), pieces.on_host(i), static_cast<size_t>(pieces.size));
      }
      copy(pieces.device, staged(0), stream);
      return;
    }
    copy(staged(0), pieces.device, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (int64_t i = 0; i < pieces.count; ++i) {
      std::memcpy(pieces.on_host(i), staged(i), static_cast<size_t>(pieces.size));
    }
  }

 private:
  uint8_t* staged(int64_t i) const { return staging_.get() + i * pieces.size; }
  void copy(void* to, const void* from, cudaStream_t stream) const {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(pieces.bytes()), pieces.kind(), stream),
          "cudaMemcpyAsync");
  }

  const std::shared_ptr<uint8_t[]> staging_ = pinned<uint8_t>(static_cast<size_t>(pieces.bytes()));
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Packed>(pieces); }
