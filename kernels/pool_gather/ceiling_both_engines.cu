// The SMs read a quarter of as many contiguous bytes while the copy engine moves the rest, from
// another place with every launch.
#include <algorithm>
#include <memory>

#include "../common/loads_first.h"
#include "../common/memory.h"
#include "../common/sm_count.h"
#include "operator.h"

constexpr int kBlocksPerSm = 2;
constexpr int64_t kParts = 4;  // the SMs get one of them
constexpr int kInFlight = 4;   // 16-byte loads per thread

__global__ void copy_contiguous(Gather gather) {
  const int4* src = source_vectors(gather, gather.first);
  int4* dst = destination_vectors(gather, 0);
  const int64_t vectors = gather.rows * kRowVectors;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * kInFlight;
  int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x * kInFlight + threadIdx.x;
  for (; first < vectors; first += step) {
    int4 held[kInFlight];
    load_vectors<Cached>(held, src, first, blockDim.x, vectors);
    store_vectors<Cached>(dst, held, first, blockDim.x, vectors);
  }
}

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>&) {
  const int64_t by_sms = sets.front().rows / kParts;
  const int64_t threads = (by_sms * kRowVectors + kInFlight - 1) / kInFlight;
  const int blocks = std::clamp(blocks_for(threads), 1, kBlocksPerSm * sm_count());
  return {[by_sms, blocks, beside = new_stream(), begun = new_event(), gathered = new_event()](
              Gather gather, cudaStream_t stream) {
    check(cudaEventRecord(begun.get(), stream), "begun");
    check(cudaMemcpyAsync(destination_bytes(gather, by_sms),
                          source_bytes(gather, gather.first + by_sms),
                          (gather.rows - by_sms) * kRowBytes, cudaMemcpyHostToDevice, stream),
          "copy");
    check(cudaStreamWaitEvent(beside.get(), begun.get()), "begun");
    gather.rows = by_sms;
    copy_contiguous<<<blocks, kBlock, 0, beside.get()>>>(gather);
    check(cudaEventRecord(gathered.get(), beside.get()), "gathered");
    check(cudaStreamWaitEvent(stream, gathered.get()), "gathered");
  }};
}
