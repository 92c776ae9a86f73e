// The SMs read as many contiguous bytes: what no kernel that reads host memory can beat.
#include "operator.h"

constexpr int kInFlight = 4;  // 16-byte loads a thread has outstanding

__global__ void copy_contiguous(Gather gather) {
  const int4* src = reinterpret_cast<const int4*>(gather.src);
  int4* dst = reinterpret_cast<int4*>(gather.dst);
  const int64_t vectors = gather.rows * kRowVectors;
  const int64_t tile = static_cast<int64_t>(blockDim.x) * kInFlight;
  for (int64_t base = blockIdx.x * tile; base < vectors; base += gridDim.x * tile) {
    int4 held[kInFlight];
#pragma unroll
    for (int turn = 0; turn < kInFlight; ++turn) {
      const int64_t i = base + turn * blockDim.x + threadIdx.x;
      if (i < vectors) {
        held[turn] = src[i];
      }
    }
#pragma unroll
    for (int turn = 0; turn < kInFlight; ++turn) {
      const int64_t i = base + turn * blockDim.x + threadIdx.x;
      if (i < vectors) {
        dst[i] = held[turn];
      }
    }
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  copy_contiguous<<<blocks_for(gather.rows * kRowVectors / kInFlight + 1), kBlock, 0, stream>>>(
      gather);
}
