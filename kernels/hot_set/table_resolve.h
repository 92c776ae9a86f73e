// The step of one request by one thread block, but for the bytes of missing rows. A table in device
// memory has the slot of each row of the context: one load finds a hit or a miss, without a hash
// table and without a scan of the rows in the hot set. The order of use is an exact list of slots.
#pragma once

#include <memory>
#include <vector>

#include "../common/check.h"
#include "../common/memory.h"
#include "table_rows.h"

constexpr int kTableThreads = 1024;

// Scratch memory of a layer that outlives steps.
struct Residency {
  uint16_t* slot_of;       // [requests, context_rows], or kNotResident
  uint16_t* oldest_first;  // [requests, slots], slots in the order of use
};

// Residencies of layers of equal shape, in which all slots are free.
class Residencies {
 public:
  explicit Residencies(const std::vector<HotSet>& layers)
      : tables_(int64_t{layers.front().requests} * layers.front().context_rows),
        orders_(int64_t{layers.front().requests} * layers.front().slots),
        slot_of_(on_device<uint16_t>(layers.size() * static_cast<size_t>(tables_))),
        oldest_first_(on_device<uint16_t>(layers.size() * static_cast<size_t>(orders_))) {
    check(cudaMemset(slot_of_.get(), 0xFF, layers.size() * static_cast<size_t>(tables_) * 2),
          "residency");
    std::vector<uint16_t> order(layers.size() * static_cast<size_t>(orders_));
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<uint16_t>(i % static_cast<size_t>(layers.front().slots));
    }
    check(cudaMemcpy(oldest_first_.get(), order.data(), order.size() * sizeof(uint16_t),
                     cudaMemcpyHostToDevice),
          "order of use");
  }

  Residency of(int layer) const {
    return {slot_of_.get() + layer * tables_, oldest_first_.get() + layer * orders_};
  }

 private:
  int64_t tables_;  // elements of a layer
  int64_t orders_;
  std::shared_ptr<uint16_t[]> slot_of_;
  std::shared_ptr<uint16_t[]> oldest_first_;
};

#ifdef __CUDACC__
// Shared memory of a block that resolves.
struct TableShared {
  alignas(16) uint32_t used_rows[kMaxContextRows / kWarp];  // a bit per row of the context
  uint32_t used_slots[kMaxSlots / kWarp];
  int32_t miss_ids[kMaxTopk];
  int32_t miss_pool_rows[kMaxTopk];
  uint16_t miss_slots[kMaxTopk];
  uint16_t row_ranks[kTableThreads];  // used rows before those of a thread
  int warp_counts[kWarp];
  int misses;
};

// A thread has the ids thread, thread + 1024, and consecutive slots of the order of use.
class TableResolve {
 public:
  __device__ TableResolve(const HotSet& set, const Residency& residency, int request,
                          TableShared& shared)
      : set_(set),
        shared_(shared),
        request_(request),
        thread_(static_cast<int>(threadIdx.x)),
        slot_of_(residency.slot_of + static_cast<int64_t>(request) * set.context_rows),
        oldest_first_(residency.oldest_first + static_cast<int64_t>(request) * set.slots) {}

  // Finds the misses: their number, ids and pool rows are in shared memory on return.
  __device__ void find() {
    const int32_t* ids = set_.ids + static_cast<int64_t>(request_) * set_.topk;
    step_ = *set_.step;  // early: a later load would be waited for
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      const int i = turn * kTableThreads + thread_;
      ids_[turn] = i < set_.topk ? ids[i] : kFree;
    }
    slots_of_thread_ = (set_.slots + kTableThreads - 1) / kTableThreads;
#pragma unroll
    for (int i = 0; i < kSlotTurns; ++i) {
      const int at = thread_ * slots_of_thread_ + i;
      order_[i] = i < slots_of_thread_ && at < set_.slots ? oldest_first_[at] : kNotResident;
    }
    clear();
    __syncthreads();
    int32_t pool_rows[kIdTurns];
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      if (ids_[turn] != kFree) {
        slots_[turn] = __ldcg(slot_of_ + ids_[turn]);
        pool_rows[turn] = pool_row(set_, request_, ids_[turn]);
      }
    }
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      bool is_new = false;
      if (ids_[turn] != kFree) {
        const uint32_t row_bit = 1U << ids_[turn] % kWarp;
        const uint32_t used = atomicOr(&shared_.used_rows[ids_[turn] / kWarp], row_bit);
        if (slots_[turn] != kNotResident) {
          atomicOr(&shared_.used_slots[slots_[turn] / kWarp], 1U << slots_[turn] % kWarp);
        } else {
          is_new = (used & row_bit) == 0;  // an id may come twice
        }
      }
      const unsigned votes = __ballot_sync(~0U, is_new);
      int first = 0;
      if (lane_index() == 0 && votes != 0) {
        first = atomicAdd(&shared_.misses, __popc(votes));
      }
      first = __shfl_sync(~0U, first, 0);
      if (is_new) {
        const int miss = first + __popc(votes & ((1U << lane_index()) - 1));
        shared_.miss_ids[miss] = ids_[turn];
        shared_.miss_pool_rows[miss] = pool_rows[turn];
      }
    }
    __syncthreads();
  }

  // Evicts the oldest rows for the misses: the slots of these are in shared memory on return.
  __device__ void evict() {
    int idle = 0;
    int used_before = 0;
#pragma unroll
    for (int i = 0; i < kSlotTurns; ++i) {
      idle += is_idle(order_[i]);
    }
    const int used = rows_of_group(shared_.used_rows, thread_);
    int idle_before = 0;
    scan(idle, used, idle_before, used_before);
    shared_.row_ranks[thread_] = static_cast<uint16_t>(used_before);
    const int misses = shared_.misses;
    int rank = idle_before;
#pragma unroll
    for (int i = 0; i < kSlotTurns; ++i) {
      if (is_idle(order_[i])) {
        if (rank < misses) {
          shared_.miss_slots[rank] = order_[i];
        } else {
          oldest_first_[rank - misses] = order_[i];
        }
        ++rank;
      }
    }
    __syncthreads();
  }

  // Writes the slot of each id and the state for the next step.
  __device__ void store() {
    int32_t* rows = set_.rows + static_cast<int64_t>(request_) * set_.slots;
    int32_t* last_used = set_.last_used + static_cast<int64_t>(request_) * set_.slots;
    int32_t* out = set_.out + static_cast<int64_t>(request_) * set_.topk;
    for (int i = thread_; i < shared_.misses; i += kTableThreads) {
      const int slot = shared_.miss_slots[i];
      replace_row(rows, slot_of_, slot, shared_.miss_ids[i]);
    }
    __syncthreads();
    const int first_used = set_.slots - used_;
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      if (ids_[turn] != kFree) {
        const int32_t id = ids_[turn];
        const int slot = slots_[turn] == kNotResident ? __ldcg(slot_of_ + id) : slots_[turn];
        out[turn * kTableThreads + thread_] = slot;
        last_used[slot] = step_;
        oldest_first_[first_used + rank_in(shared_.used_rows, shared_.row_ranks, id)] =
            static_cast<uint16_t>(slot);
      }
    }
  }

 private:
  static constexpr int kIdTurns = kMaxTopk / kTableThreads;
  static constexpr int kSlotTurns = kMaxSlots / kTableThreads;
  static_assert(kMaxContextRows / kWarp == kGroupWords * kTableThreads, "a thread has one group");

  __device__ void clear() {
    reinterpret_cast<uint4*>(shared_.used_rows)[thread_] = uint4{};
    if (thread_ < kMaxSlots / kWarp) {
      shared_.used_slots[thread_] = 0;
    }
    if (thread_ == 0) {
      shared_.misses = 0;
    }
  }

  // Tests for a slot whose row this step does not use.
  __device__ bool is_idle(uint16_t slot) const {
    return slot != kNotResident && (shared_.used_slots[slot / kWarp] >> slot % kWarp & 1) == 0;
  }

  // Sums of both counts over the threads before this one. The block's second one becomes `used_`.
  __device__ void scan(int idle, int used, int& idle_before, int& used_before) {
    const int lane = lane_index();
    const int warp = thread_ / kWarp;
    int both = idle << 16 | used;  // each sum is below 2^16
#pragma unroll
    for (int delta = 1; delta < kWarp; delta *= 2) {
      const int other = __shfl_up_sync(~0U, both, delta);
      both += lane >= delta ? other : 0;
    }
    if (lane == kWarp - 1) {
      shared_.warp_counts[warp] = both;
    }
    __syncthreads();
    const int of_warp = shared_.warp_counts[lane];
    const int lower = __reduce_add_sync(~0U, lane < warp ? of_warp : 0);
    used_ = __reduce_add_sync(~0U, of_warp) & 0xFFFF;
    const int before = lower + both - (idle << 16 | used);
    idle_before = before >> 16;
    used_before = before & 0xFFFF;
  }

  const HotSet& set_;
  TableShared& shared_;
  int request_;
  int thread_;
  uint16_t* slot_of_;
  uint16_t* oldest_first_;
  int32_t ids_[kIdTurns];
  uint16_t slots_[kIdTurns];  // of the ids, or kNotResident
  uint16_t order_[kSlotTurns];
  int32_t step_ = 0;
  int slots_of_thread_ = 0;
  int used_ = 0;  // distinct rows of the step
};
#endif
