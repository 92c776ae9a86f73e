// Slots as attention kernels take them: counted through the hot sets of all requests of a layer.
#pragma once

#include "../hot_set/operator.h"

// Adds the first slot of each request to the slots that a step has written to `out`, unless the
// variant has done so. Each variant defines it.
void make_absolute(const HotSet& set, cudaStream_t stream);

#ifdef __CUDACC__
// The same by all threads of a grid.
__device__ inline void add_first_slots(const HotSet& set) {
  const int64_t count = int64_t{set.requests} * set.topk;
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t i = set.topk + thread; i < count; i += threads) {  // those of request 0 stay
    set.out[i] += static_cast<int32_t>(i / set.topk) * set.slots;
  }
}
#endif
