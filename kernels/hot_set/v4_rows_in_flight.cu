// One kernel, a block per request: it resolves, then each warp has four misses in flight.
#include "fetch.h"

__global__ void __launch_bounds__(kResolveThreads, 1) step(HotSet set, UseOrder order) {
  extern __shared__ char memory[];
  Resolving& shared = *reinterpret_cast<Resolving*>(memory);
  const int request = static_cast<int>(blockIdx.x);
  const LookedUp found = look_up(set, order, request, shared);
  assign_slots(found, shared);
  update(set, order, request, found, shared);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  fetch_rows(set, request, shared.misses, found.misses, warp, kResolveThreads / kWarp);
}

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  const auto orders = new_use_orders(layers);
  allow_shared_memory(step);
  return {[=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    const UseOrder order = use_order_of(orders, set, layer);
    step<<<set.requests, kResolveThreads, sizeof(Resolving), stream>>>(set, order);
  }};
}
