// One kernel, a block per request, as in published ones: it resolves, then each warp fetches a miss
// at a time.
#include "../common/loads_first.h"
#include "block_resolve.h"

__global__ void __launch_bounds__(kResolveThreads, 1) step(HotSet set, UseOrder order) {
  extern __shared__ char memory[];
  Resolving& shared = *reinterpret_cast<Resolving*>(memory);
  const int request = static_cast<int>(blockIdx.x);
  const LookedUp found = look_up(set, order, request, shared);
  assign_slots(found, shared);
  update(set, order, request, found, shared);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int i = warp; i < found.misses; i += kResolveThreads / kWarp) {
    const Miss miss = shared.misses[i];
    copy_row<Cached, kRowVectors>(slot_vectors(set, request, miss.slot),
                                  pool_vectors(set, pool_row(set, request, miss.id)));
  }
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
