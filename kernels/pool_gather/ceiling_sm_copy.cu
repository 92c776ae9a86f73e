// The SMs read as many contiguous bytes, from another place with every launch.
#include "../common/loads_first.h"
#include "operator.h"

constexpr int kInFlight = 4;  // 16-byte loads per thread

__global__ void copy_contiguous(Gather gather) {
  const int4* src = source_vectors(gather, gather.first);
  int4* dst = destination_vectors(gather, 0);
  const int64_t vectors = gather.rows * kRowVectors;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x * kInFlight + threadIdx.x;
  copy_loads_first<Cached, kInFlight>(dst, src, first, blockDim.x, vectors);
}

Prepared prepare(const std::vector<Gather>&, const std::vector<int>&) {
  return {[](const Gather& gather, cudaStream_t stream) {
    const int64_t threads = (gather.rows * kRowVectors + kInFlight - 1) / kInFlight;
    copy_contiguous<<<blocks_for(threads), kBlock, 0, stream>>>(gather);
  }};
}
