// One kernel, a cluster of blocks per request. The first block resolves. While it updates the
// state, the others fetch the misses, which they read from its shared memory.
#include "cluster.h"
#include "fetch.h"

constexpr int kFewRequests = 16;  // at most as many have large clusters, which together fit the GPU

__global__ void __launch_bounds__(kResolveThreads, 1) step(HotSet set, UseOrder order) {
  extern __shared__ char memory[];
  Resolving& shared = *reinterpret_cast<Resolving*>(memory);
  const int rank = static_cast<int>(__clusterRelativeBlockRank());
  const int blocks = static_cast<int>(__clusterSizeInBlocks());
  const int request = static_cast<int>(blockIdx.x) / blocks;
  LookedUp found{};
  if (rank == 0) {
    found = look_up(set, order, request, shared);
    assign_slots(found, shared);
  }
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  if (rank == 0) {
    update(set, order, request, found, shared);
  } else {
    const auto* first = static_cast<const Resolving*>(__cluster_map_shared_rank(&shared, 0));
    const int warps = kResolveThreads / kWarp;
    const int warp = (rank - 1) * warps + static_cast<int>(threadIdx.x) / kWarp;
    fetch_rows(set, request, first->misses, first->miss_count, warp, (blocks - 1) * warps);
  }
  __cluster_barrier_arrive();  // until then, the first block's shared memory is read
  __cluster_barrier_wait();
}

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  const auto orders = new_use_orders(layers);
  allow_shared_memory(step);
  const int requests = layers.front().requests;
  const int blocks = requests <= kFewRequests ? 8 : 2;
  const ClusterLaunch shape = {requests * blocks, blocks, kResolveThreads, sizeof(Resolving),
                               false};
  return {[=](int layer, cudaStream_t stream) {
    const HotSet& set = layers[static_cast<size_t>(layer)];
    launch_clusters(step, shape, stream, set, use_order_of(orders, set, layer));
  }};
}
