// One kernel, a block per request: it resolves with a table of slots, then each warp fetches a miss
// at a time. Policies differ in how they resolve.
#pragma once

#include <type_traits>
#include <vector>

#include "../common/loads_first.h"
#include "cluster.h"
#include "operator.h"

#ifdef __CUDACC__
constexpr int kStepThreads = 1024;

template <class Resolve, class State>
__global__ void __launch_bounds__(kStepThreads) block_step(HotSet set, State state) {
  __shared__ typename Resolve::Shared shared;
  const int request = static_cast<int>(blockIdx.x);
  Resolve step(set, state, request, shared);
  step.resolve();
  step.store();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int i = warp; i < shared.misses; i += kStepThreads / kWarp) {
    copy_row<Cached, kRowVectors>(slot_vectors(set, request, shared.miss_slots[i]),
                                  pool_vectors(set, shared.miss_pool_rows[i]));
  }
}

// `states.of(layer)` is the scratch memory of a layer.
template <class Resolve, class States>
Prepared prepare_block_steps(const std::vector<HotSet>& layers, const States& states) {
  const ClusterLaunch shape = {layers.front().requests, 1, kStepThreads, 0, false};
  return {[=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    const auto state = states.of(layer);
    launch_clusters(block_step<Resolve, std::decay_t<decltype(state)>>, shape, stream, set, state);
  }};
}
#endif
