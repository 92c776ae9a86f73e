// Slots as attention kernels take them: counted through the hot sets of all requests of a layer.
#pragma once

#include "../hot_set/operator.h"

// Adds the first slot of each request to the slots that a step has written to `out`. Enqueues
// nothing for one request.
void make_absolute(const HotSet& set, cudaStream_t stream);

#ifdef __CUDACC__
__global__ void add_first_slots(int32_t* out, int topk, int slots) {
  const int request = static_cast<int>(blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < topk; i += static_cast<int>(blockDim.x)) {
    out[static_cast<int64_t>(request) * topk + i] += request * slots;
  }
}

void make_absolute(const HotSet& set, cudaStream_t stream) {
  if (set.requests > 1) {
    add_first_slots<<<set.requests, 1024, 0, stream>>>(set.out, set.topk, set.slots);
  }
}
#endif
