// A kernel requests its rows and reads them as the CPU packs them.
#include <memory>

#include "operator.h"
#include "request_kernel.h"
#include "request_packer.h"

constexpr int kMaxBlocks = 128;

__global__ void __launch_bounds__(kBlock) gather_rows(Gather gather, Requests requests) {
  count_sm(gather.sm_launches);
  request_and_copy(gather, requests, gridDim.x);
}

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus) {
  const auto packer = std::make_shared<RequestPacker>(sets.front().rows, cpus);
  return {[packer](const Gather& gather, cudaStream_t stream) {
            packer->launch(gather, stream, [&](const Requests& requests) {
              const int blocks = static_cast<int>(std::min<int64_t>(requests.pieces, kMaxBlocks));
              gather_rows<<<blocks, kBlock, 0, stream>>>(gather, requests);
            });
          },
          [packer](const Gather& gather) { packer->flush(gather); }};
}
