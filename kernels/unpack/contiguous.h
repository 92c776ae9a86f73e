// What the copies of contiguous bytes have in common: where a receive begins on both sides.
#pragma once

#include <algorithm>

#include "operator.h"

// Source and destination of a receive whose fragments lie in order and without gaps.
struct Ends {
  const uint8_t* src;
  uint8_t* dst;
};

// The lowest address of either side over all fragments.
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
