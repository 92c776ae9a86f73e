// The SMs read as many contiguous bytes: what no kernel that reads host memory can beat.
#include "../common/loads_first.h"
#include "operator.h"

constexpr int kInFlight = 4;  // 16-byte loads a thread has outstanding

__global__ void copy_contiguous(Gather gather) {
  const int4* src = reinterpret_cast<const int4*>(gather.src);
  int4* dst = reinterpret_cast<int4*>(gather.dst);
  const int64_t vectors = gather.rows * kRowVectors;
  const int64_t tile = static_cast<int64_t>(blockDim.x) * kInFlight;
  for (int64_t base = blockIdx.x * tile; base < vectors; base += gridDim.x * tile) {
    const int64_t first = base + threadIdx.x;
    copy_loads_first<Cached, kInFlight>(dst, src, first, blockDim.x, vectors);
  }
}

void launch(const Gather& gather, cudaStream_t stream) {
  copy_contiguous<<<blocks_for(gather.rows * kRowVectors / kInFlight + 1), kBlock, 0, stream>>>(
      gather);
}
