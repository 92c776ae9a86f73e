// Steps of several layers in two kernels each: a block a request resolves and lists the misses,
// then FETCH_BLOCKS blocks fetch them, so that the other SMs are left to a neighbour. Threads on
// the CPU may pack rows from their end while the SMs read in place from the first one on, until
// both sides meet. One packer serves all layers: a layer's launch waits until its threads have left
// the previous layer's.
#pragma once

#include <memory>
#include <vector>

#include "../hot_set/on_request.h"
#include "absolute_slots.h"

class LayersOnRequest {
 public:
  LayersOnRequest(const std::vector<HotSet>& layers, const std::vector<int>& cpus, bool packs)
      : layers_(layers),
        max_rows_(int64_t{layers.front().requests} * layers.front().topk),
        residencies_(layers),
        model_(layers.front().pool_rows * kRowBytes, kRowBytes, 0, 0, kChosen),
        lists_(on_device<uint32_t>(static_cast<size_t>(2 * max_rows_ + 4))),
        reserved_(on_device<unsigned long long>(1)) {
    check(cudaMemset(reserved_.get(), 0, sizeof(unsigned long long)), "counter");
    if (packs && !model_.is_within_reach()) {
      packer_ = std::make_shared<MissPacker<kRowBytes>>(layers.front().pool, max_rows_, cpus);
    }
    model_.fixed_32nds =
        packer_ == nullptr ? 32 : 0;  // of the rows, which the SMs own from the start
  }

  void launch(int layer, cudaStream_t stream) const {
    const HotSet& set = layers_[static_cast<size_t>(layer)];
    const auto resolve = [&](const MissRequests& requests) {
      resolve_and_request<<<set.requests, kTableThreads, 0, stream>>>(
          set, residencies_.of(layer), misses(set), requests, model_, Reserved{reserved_.get()},
          false);
    };
    const auto fetch_misses = [&](const MissRequests& requests) {
      cudaLaunchAttribute early{};
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = FETCH_BLOCKS;
      config.blockDim = kBlock;
      config.stream = stream;
      config.attrs = &early;
      config.numAttrs = 1;
      const bool meets = packer_ != nullptr;
      check(cudaLaunchKernelEx(&config, meets ? fetch<true> : fetch<false>, misses(set), requests),
            "fetch");
    };
    if (packer_ == nullptr) {
      resolve({});
      fetch_misses({});
    } else {
      packer_->launch(stream, resolve, fetch_misses);
    }
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
  ShareModel model_;
  std::shared_ptr<uint32_t[]> lists_;
  std::shared_ptr<unsigned long long[]> reserved_;
  std::shared_ptr<MissPacker<kRowBytes>> packer_;  // null if the SMs read all rows
};

inline Prepared prepare_layers(const std::vector<HotSet>& layers, const std::vector<int>& cpus,
                               bool packs) {
  const auto made = std::make_shared<LayersOnRequest>(layers, cpus, packs);
  return {[made](int layer, cudaStream_t stream) { made->launch(layer, stream); }};
}
