// Steps of several layers in two kernels each: a block a request resolves and lists the misses,
// then FETCH_BLOCKS blocks fetch them. Threads on the CPU may pack rows for these. One packer
// serves all layers: a layer's launch waits until the threads have left the previous layer's.
#pragma once

#include <memory>
#include <vector>

#include "../hot_set/on_request.h"
#include "absolute_slots.h"

#ifndef FETCH_BLOCKS  // a flag of variants
#define FETCH_BLOCKS 128
#endif

// Who brings missing rows from a pool beyond the reach of the TLB: the SMs, the CPU, or the CPU but
// for a share that a model leaves to the SMs. From smaller pools, the SMs do.
enum class Bringing { kInPlace, kPacked, kShared };

constexpr int kFewThreads = 1024;       // of a block in place, so that no two of them share an SM
constexpr int kRowsOfWarp = 4;          // in flight
constexpr float kPackedRowS = 180e-9F;  // a fast core's time to pack a row of 656 bytes
constexpr float kHeadStart = 8e-6F;     // of the reads in place

// Reads all misses in place. A warp has several rows in flight, so that few blocks keep the link
// busy and leave the other SMs to a neighbour.
__global__ void __launch_bounds__(kFewThreads) fetch_in_place(HotSet set, Misses misses) {
  cudaGridDependencySynchronize();
  add_first_slots(set);
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

// Copies packed rows, and beside them reads those that are left to the SMs.
__global__ void __launch_bounds__(kBlock)
    fetch_packed(HotSet set, Misses misses, MissRequests requests) {
  cudaGridDependencySynchronize();
  add_first_slots(set);
  const MissFetch<kRowBytes> rows{misses, requests};
  const int64_t in_place = *misses.rows_in_place;
  const int64_t end = *misses.end;
  const int blocks = static_cast<int>(gridDim.x);
  const int block = static_cast<int>(blockIdx.x);
  const int packing = in_place == end ? 0 : in_place > 0 ? blocks / 2 : blocks;
  if (block < packing) {
    rows.copy_packed(block, packing, in_place, end);
  } else {
    rows.read_in_place(block - packing, blocks - packing, 0, in_place);
  }
}

// Both kernels do it.
void make_absolute(const HotSet&, cudaStream_t) {}

class LayersOnRequest {
 public:
  LayersOnRequest(const std::vector<HotSet>& layers, const std::vector<int>& cpus,
                  Bringing bringing)
      : layers_(layers),
        max_rows_(int64_t{layers.front().requests} * layers.front().topk),
        residencies_(layers),
        model_(layers.front().pool_rows * kRowBytes, kRowBytes, 0, kHeadStart, 32),
        lists_(on_device<uint32_t>(static_cast<size_t>(2 * max_rows_ + 4))),
        reserved_(on_device<unsigned long long>(1)) {
    check(cudaMemset(reserved_.get(), 0, sizeof(unsigned long long)), "counter");
    if (bringing != Bringing::kInPlace && !model_.is_within_reach()) {
      packer_ = std::make_shared<MissPacker<kRowBytes>>(layers.front().pool, max_rows_, cpus);
      const auto threads = static_cast<float>(packer_->threads());
      model_.packed_row_s = kPackedRowS * kRowBytes / 656 / threads;
      model_.fixed_32nds = bringing == Bringing::kPacked ? 0 : kChosen;  // that the SMs read
    }
  }

  void launch(int layer, cudaStream_t stream) const {
    const HotSet& set = layers_[static_cast<size_t>(layer)];
    uint32_t* const counts = lists_.get() + 2 * max_rows_;
    const Misses misses = {set.pool, set.hot,    lists_.get(), lists_.get() + max_rows_,
                           counts,   counts + 1, counts + 2,   counts + 3};
    const auto resolve = [&](const MissRequests& requests) {
      resolve_and_request<<<set.requests, kTableThreads, 0, stream>>>(
          set, residencies_.of(layer), misses, requests, model_, Reserved{reserved_.get()}, false);
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
      check(cudaLaunchKernelEx(&config, fetch_in_place, set, misses), "fetch");
      return;
    }
    packer_->launch(stream, resolve, [&](const MissRequests& requests) {
      check(cudaLaunchKernelEx(&config, fetch_packed, set, misses, requests), "fetch");
    });
  }

 private:
  std::vector<HotSet> layers_;
  int64_t max_rows_;  // of a layer
  Residencies residencies_;
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
