// One kernel reads a share of the rows in place, while the CPU packs the others, which it asks for.
#include <array>
#include <memory>

#include "asking.h"
#include "fastest.h"
#include "operator.h"
#include "requests.h"

constexpr int kMostBlocks = 64;  // of either kind
// How many of 32 equal shares may be read in place.
constexpr int kShares = 32;
constexpr std::array kSharesInPlace = {0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32};

// A warp a row, by all blocks but the first `others`.
__device__ void read_in_place(const Gather& gather, int others) {
  const int64_t thread = int64_t{blockIdx.x - others} * blockDim.x + threadIdx.x;
  const int64_t warps = int64_t{gridDim.x - others} * blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  for (int64_t row = thread / kWarp; row < gather.rows; row += warps) {
    const int2 pair = gather.pairs[row];
    const int4* src = source_vectors(gather, pair.x);
    int4* dst = destination_vectors(gather, pair.y);
    constexpr int kTurns = (kRowVectors + kWarp - 1) / kWarp;
    int4 held[kTurns];
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kWarp + lane;
      if (i < kRowVectors) {
        held[turn] = __ldcs(src + i);
      }
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kWarp + lane;
      if (i < kRowVectors) {
        __stcs(dst + i, held[turn]);
      }
    }
  }
}

__global__ void __launch_bounds__(kBlock)
    gather_rows(Gather in_place, Gather packed, Requests requests, int asking) {
  if (static_cast<int>(blockIdx.x) < asking) {
    ask_and_copy(packed, requests, asking);
  } else {
    read_in_place(in_place, asking);
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
    share_ = kSharesInPlace[fastest(kSharesInPlace.size(), sets, flushed, launched)];
  }

  void launch(const Gather& gather, cudaStream_t stream) {
    Gather in_place = gather;
    in_place.rows = gather.rows * share_ / kShares;
    Gather packed = gather;
    packed.pairs += in_place.rows;
    packed.rows -= in_place.rows;
    packer_.launch(packed, stream, [&](const Requests& requests) {
      const int asking = static_cast<int>(std::min<int64_t>(requests.pieces, kMostBlocks));
      const int reading = std::min(blocks_for(in_place.rows * kWarp), kMostBlocks);
      if (asking + reading > 0) {
        gather_rows<<<asking + reading, kBlock, 0, stream>>>(in_place, packed, requests, asking);
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
