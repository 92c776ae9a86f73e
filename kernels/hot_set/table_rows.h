// A request's table, which has the slot of each row of the context; and sets of rows, a bit each.
#pragma once

#include "operator.h"

constexpr uint16_t kNotResident = 0xFFFF;  // slot of a row that is not in the hot set
constexpr int kGroupWords = 4;             // words of a set that a thread counts

#ifdef __CUDACC__
// Puts row `id` into `slot`, in place of its previous row.
__device__ inline void replace_row(int32_t* rows, uint16_t* slot_of, int slot, int32_t id) {
  const int32_t evicted = rows[slot];
  if (evicted != kFree) {
    slot_of[evicted] = kNotResident;
  }
  rows[slot] = id;
  slot_of[id] = static_cast<uint16_t>(slot);
}

// Number of rows in a set with a lower id; `ranks` has the number before each group of words.
__device__ inline int rank_in(const uint32_t* set, const uint16_t* ranks, int32_t id) {
  const int word = id / kWarp;
  const int group = word / kGroupWords;
  int rank = ranks[group];
  for (int before = group * kGroupWords; before < word; ++before) {
    rank += __popc(set[before]);
  }
  return rank + __popc(set[word] & ((1U << id % kWarp) - 1));
}

// Number of rows in the group of this thread.
__device__ inline int rows_of_group(const uint32_t* set, int thread) {
  const uint4 words = reinterpret_cast<const uint4*>(set)[thread];
  return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}
#endif
