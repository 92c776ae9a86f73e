// The path of variants that copy contiguous bytes. They define its `unpack` and `waits`.
#pragma once

#include <algorithm>

#include "operator.h"

// Source and destination of a receive whose fragments are in order and without gaps.
struct Ends {
  const uint8_t* src;
  uint8_t* dst;
};

// The lowest address of all fragments on each side.
inline Ends ends_of(const Receive& receive) {
  uint64_t src = receive.bounce_bytes;
  uint64_t dst = receive.dst_bytes;
  for (const Chunk& chunk : receive.chunks) {
    for (const DescriptorBlock& block : chunk) {
      for (uint32_t i = 0; i < block.count; ++i) {
        src = std::min<uint64_t>(src, block.descriptors[i].src_off);
        dst = std::min(dst, block.descriptors[i].dst_off);
      }
    }
  }
  return {receive.bounce + src, receive.dst + dst};
}

namespace {

// Knows where the bytes start on both sides.
class ContiguousPath : public Path {
 public:
  explicit ContiguousPath(const Receive& receive) : receive_(receive), ends_(ends_of(receive)) {}

  inline void unpack(cudaStream_t stream, PartTimer& timer) override;
  inline bool waits() const override;

 private:
  const Receive& receive_;
  Ends ends_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<ContiguousPath>(receive);
}
