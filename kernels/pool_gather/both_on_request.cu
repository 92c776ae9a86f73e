// A kernel reads a share of the rows in place and requests the other rows, which the CPU packs.
#include <array>
#include <memory>

#include "../common/loads_first.h"
#include "fastest_choice.h"
#include "operator.h"
#include "request_kernel.h"
#include "request_packer.h"

constexpr int kMaxBlocks = 64;  // that read in place, and that request
// Equal shares of the rows, and the numbers of them to try in place.
constexpr int kShares = 32;
constexpr std::array kSharesInPlace = {0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32};

// Copies a row per warp, by all blocks but the first `others`.
__device__ void read_in_place(const Gather& gather, int others) {
  const int64_t thread = int64_t{blockIdx.x - others} * blockDim.x + threadIdx.x;
  const int64_t warps = int64_t{gridDim.x - others} * blockDim.x / kWarp;
  for (int64_t row = thread / kWarp; row < gather.rows; row += warps) {
    const int2 pair = gather.pairs[row];
    copy_row<Streaming, kRowVectors>(destination_vectors(gather, pair.y),
                                     source_vectors(gather, pair.x));
  }
}

__global__ void __launch_bounds__(kBlock)
    gather_rows(Gather in_place, Gather packed, Requests requests, int requesting) {
  if (static_cast<int>(blockIdx.x) < requesting) {
    request_and_copy(packed, requests, requesting);
  } else {
    read_in_place(in_place, requesting);
  }
}

class Both {
 public:
  Both(int64_t rows, const std::vector<int>& cpus) : packer_(rows, cpus) {}

  void tune(const std::vector<Gather>& sets) {
    const auto flushed = [this](const Gather& gather) { flush(gather); };
    const auto launched = [&](size_t choice, const Gather& gather, cudaStream_t stream) {
      share_ = kSharesInPlace[choice];
      launch(gather, stream);
    };
    share_ = kSharesInPlace[fastest_choice(kSharesInPlace.size(), sets, flushed, launched)];
  }

  void launch(const Gather& gather, cudaStream_t stream) {
    Gather in_place = gather;
    in_place.rows = gather.rows * share_ / kShares;
    Gather packed = gather;
    packed.pairs += in_place.rows;
    packed.rows -= in_place.rows;
    packer_.launch(packed, stream, [&](const Requests& requests) {
      const int requesting = static_cast<int>(std::min<int64_t>(requests.pieces, kMaxBlocks));
      const int reading = std::min(blocks_for(in_place.rows * kWarp), kMaxBlocks);
      if (requesting + reading > 0) {
        gather_rows<<<requesting + reading, kBlock, 0, stream>>>(in_place, packed, requests,
                                                                 requesting);
      }
    });
  }

  void flush(const Gather& gather) { packer_.flush(gather); }

 private:
  int share_ = 0;
  RequestPacker packer_;
};

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus) {
  const auto both = std::make_shared<Both>(sets.front().rows, cpus);
  both->tune(sets);
  return {[both](const Gather& gather, cudaStream_t stream) { both->launch(gather, stream); },
          [both](const Gather& gather) { both->flush(gather); }};
}
