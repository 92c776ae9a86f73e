// A block a request resolves by a table of slots; other blocks fetch what it finds missing. It is
// the step of one layer of the study hot_set, once for each layer.
#include "../hot_set/table_spread.cu"
#include "absolute_slots.h"

__global__ void count_through(HotSet set) { add_first_slots(set); }

void make_absolute(const HotSet& set, cudaStream_t stream) {
  if (set.requests > 1) {
    count_through<<<set.requests - 1, kTableThreads, 0, stream>>>(set);
  }
}
