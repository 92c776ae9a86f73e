// As s4_batched, but fragments whose source and destination are aligned differently are read as
// 16-byte vectors and shifted in registers.
#include "batched.h"

namespace {

// Bytes `shift` to `shift` + 15 of the 32 bytes in `low` and `high`; `shift` is below 16.
__device__ uint4 shifted(const uint4& low, const uint4& high, uint32_t shift) {
  uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  // Shifted by two words, one word, then bytes: constant indices keep the words in registers.
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    words[i] = shift & 8 ? words[i + 2] : words[i];
  }
#pragma unroll
  for (int i = 0; i < 5; ++i) {
    words[i] = shift & 4 ? words[i + 1] : words[i];
  }
  const uint32_t bits = shift % 4 * 8;
  return {__funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
          __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits)};
}

// Copies bytes up to the destination's first 16-byte boundary, then vectors, then the remaining
// bytes. Every vector that is read holds a byte of the fragment, so it lies in the bounce buffer.
struct ShiftedVectors {
  __device__ static void copy(const Share& share) {
    const uint32_t head =
        min(share.len, static_cast<uint32_t>(-reinterpret_cast<intptr_t>(share.dst) & 15));
    for (uint32_t i = share.lane; i < head; i += share.team) {
      share.dst[i] = share.src[i];
    }
    const Share body{share.dst + head, share.src + head, share.len - head, share.lane, share.team};
    const uint32_t shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(body.src) & 15);
    if (shift == 0) {
      copy_words<uint4>(body);
    } else {
      copy_shifted(body, shift);
    }
  }

  __device__ static void copy_shifted(const Share& share, uint32_t shift) {
    const uint4* src = reinterpret_cast<const uint4*>(share.src - shift);
    uint4* dst = reinterpret_cast<uint4*>(share.dst);
    const uint32_t vectors = share.len / 16;
    for (uint32_t first = share.lane; first < vectors; first += kLoadsInFlight * share.team) {
      uint4 low[kLoadsInFlight];
      uint4 high[kLoadsInFlight];
#pragma unroll
      for (int turn = 0; turn < kLoadsInFlight; ++turn) {
        const uint32_t i = first + turn * share.team;
        if (i < vectors) {
          low[turn] = src[i];
          high[turn] = src[i + 1];  // the next thread reads it too: an L1 hit
        }
      }
#pragma unroll
      for (int turn = 0; turn < kLoadsInFlight; ++turn) {
        const uint32_t i = first + turn * share.team;
        if (i < vectors) {
          dst[i] = shifted(low[turn], high[turn], shift);
        }
      }
    }
    for (uint32_t i = vectors * 16 + share.lane; i < share.len; i += share.team) {
      share.dst[i] = share.src[i];
    }
  }
};

}  // namespace

void BatchedPath::unpack(cudaStream_t stream, PartTimer& timer) {
  batch_.send(stream, timer);
  enqueue<ShiftedVectors>(receive_, batch_.on_gpu(), receive_.descriptors, receive_.bytes, stream);
  timer.lap(kLaunch);
}
