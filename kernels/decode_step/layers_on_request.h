// Steps of several layers in two kernels each: a block a request resolves and lists the misses,
// then FETCH_BLOCKS blocks fetch them. Threads on the CPU may pack rows for these. One packer
// serves all layers: a layer's launch waits until the threads have left the previous layer's.
#pragma once

#include <memory>
#include <vector>

#include "../hot_set/on_request.h"
#include "absolute_slots.h"

// Who brings missing rows from a pool beyond the reach of the TLB. From smaller pools, the SMs do.
enum class Bringing { kInPlace, kPacked, kBothUntilMet };

constexpr int kFewThreads = 512;  // of a block that reads in place
constexpr int kRowsOfWarp = 4;    // in flight

// Reads all misses in place. A warp has several rows in flight, so that few blocks keep the link
// busy and leave the other SMs to a neighbour.
__global__ void __launch_bounds__(kFewThreads) fetch_in_place(Misses misses) {
  cudaGridDependencySynchronize();
  const MissFetch<kRowBytes> rows{misses, {}};
  const int64_t end = *misses.end;
  const int64_t warps = warp_count();
  for (int64_t first = warp_index(); first < end; first += warps * kRowsOfWarp) {
    int4 held[kRowsOfWarp][kWarpTurns<kRowVectors>];
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      if (const int64_t row = first + r * warps; row < end) {
        load_vectors<Streaming>(held[r], rows.source(row), lane_index(), kWarp, kRowVectors);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      if (const int64_t row = first + r * warps; row < end) {
        store_vectors<Streaming>(rows.destination(row), held[r], lane_index(), kWarp, kRowVectors);
      }
    }
  }
}

class LayersOnRequest {
 public:
  LayersOnRequest(const std::vector<HotSet>& layers, const std::vector<int>& cpus,
                  Bringing bringing)
      : layers_(layers),
        max_rows_(int64_t{layers.front().requests} * layers.front().topk),
        residencies_(layers),
        bringing_(bringing),
        model_(layers.front().pool_rows * kRowBytes, kRowBytes, 0, 0, kChosen),
        lists_(on_device<uint32_t>(static_cast<size_t>(2 * max_rows_ + 4))),
        reserved_(on_device<unsigned long long>(1)) {
    check(cudaMemset(reserved_.get(), 0, sizeof(unsigned long long)), "counter");
    if (bringing != Bringing::kInPlace && !model_.is_within_reach()) {
      packer_ = std::make_shared<MissPacker<kRowBytes>>(layers.front().pool, max_rows_, cpus);
    }
    model_.fixed_32nds = packer_ == nullptr ? 32 : 0;  // of the rows that the SMs are given
  }

  void launch(int layer, cudaStream_t stream) const {
    const HotSet& set = layers_[static_cast<size_t>(layer)];
    const auto resolve = [&](const MissRequests& requests) {
      resolve_and_request<<<set.requests, kTableThreads, 0, stream>>>(
          set, residencies_.of(layer), misses(set), requests, model_, Reserved{reserved_.get()},
          false);
    };
    // Its blocks are resident when the previous kernel ends.
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = FETCH_BLOCKS;
    config.blockDim = packer_ == nullptr ? kFewThreads : kBlock;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    if (packer_ == nullptr) {
      resolve({});
      check(cudaLaunchKernelEx(&config, fetch_in_place, misses(set)), "fetch");
      return;
    }
    packer_->launch(stream, resolve, [&](const MissRequests& requests) {
      const auto kernel = bringing_ == Bringing::kPacked ? fetch<false> : fetch<true>;
      check(cudaLaunchKernelEx(&config, kernel, misses(set), requests), "fetch");
    });
  }

 private:
  Misses misses(const HotSet& set) const {
    uint32_t* const counts = lists_.get() + 2 * max_rows_;
    return {set.pool, set.hot,    lists_.get(), lists_.get() + max_rows_,
            counts,   counts + 1, counts + 2,   counts + 3};
  }

  std::vector<HotSet> layers_;
  int64_t max_rows_;  // of a layer
  Residencies residencies_;
  Bringing bringing_;
  ShareModel model_;
  std::shared_ptr<uint32_t[]> lists_;
  std::shared_ptr<unsigned long long[]> reserved_;
  std::shared_ptr<MissPacker<kRowBytes>> packer_;  // null if the SMs read all rows
};

inline Prepared prepare_layers(const std::vector<HotSet>& layers, const std::vector<int>& cpus,
                               Bringing bringing) {
  const auto made = std::make_shared<LayersOnRequest>(layers, cpus, bringing);
  return {[made](int layer, cudaStream_t stream) { made->launch(layer, stream); }};
}
