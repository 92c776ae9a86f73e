// The step of one request by one thread block, but for the bytes of missing rows, with the policy
// CLOCK. A hand goes round the slots and spares a row once if a step has used it since the hand
// last passed. A bit per slot takes the place of the order of use.
#pragma once

#include <memory>
#include <vector>

#include "../common/check.h"
#include "../common/memory.h"
#include "table_rows.h"

constexpr int kClockThreads = 1024;

// Scratch memory of a layer that outlives steps.
struct ClockState {
  uint16_t* slot_of;  // [requests, context_rows], or kNotResident
  uint32_t* used;     // [requests, slots / 32]: a bit per slot, used since the hand last passed
  int32_t* hands;     // [requests]: slot that is considered next
};

// States of layers of equal shape, in which all slots are free.
class ClockStates {
 public:
  explicit ClockStates(const std::vector<HotSet>& layers)
      : requests_(layers.front().requests),
        context_rows_(layers.front().context_rows),
        words_(layers.front().slots / kWarp),
        slot_of_(on_device<uint16_t>(count(layers, context_rows_))),
        used_(on_device<uint32_t>(count(layers, words_))),
        hands_(on_device<int32_t>(count(layers, 1))) {
    check(cudaMemset(slot_of_.get(), 0xFF, count(layers, context_rows_) * sizeof(uint16_t)),
          "table of slots");
    check(cudaMemset(used_.get(), 0, count(layers, words_) * sizeof(uint32_t)), "bits of slots");
    check(cudaMemset(hands_.get(), 0, count(layers, 1) * sizeof(int32_t)), "hands");
  }

  ClockState of(int layer) const {
    const int64_t request = layer * requests_;
    return {slot_of_.get() + request * context_rows_, used_.get() + request * words_,
            hands_.get() + request};
  }

 private:
  size_t count(const std::vector<HotSet>& layers, int64_t per_request) const {
    return layers.size() * static_cast<size_t>(requests_ * per_request);
  }

  int64_t requests_;
  int64_t context_rows_;
  int64_t words_;
  std::shared_ptr<uint16_t[]> slot_of_;
  std::shared_ptr<uint32_t[]> used_;
  std::shared_ptr<int32_t[]> hands_;
};

#ifdef __CUDACC__
// Numbers of rows or slots of some threads.
struct ClockCounts {
  int missing;
  int fresh;   // slots that the step does not use, and no step has since the hand last passed
  int spared;  // slots that the step does not use, and one has

  __device__ uint64_t packed() const {  // each sum is below 2^16
    return static_cast<uint64_t>(missing) << 32 | static_cast<uint64_t>(fresh) << 16 |
           static_cast<uint64_t>(spared);
  }

  __device__ static ClockCounts of(uint64_t packed) {
    return {static_cast<int>(packed >> 32), static_cast<int>(packed >> 16 & 0xFFFF),
            static_cast<int>(packed & 0xFFFF)};
  }
};

// Shared memory of a block that resolves.
struct ClockShared {
  alignas(16) uint32_t missing_rows[kMaxContextRows / kWarp];  // a bit per row of the context
  uint32_t used_now[kMaxSlots / kWarp];
  uint32_t used_before[kMaxSlots / kWarp];
  uint16_t row_ranks[kClockThreads];  // missing rows before those of a thread
  int32_t miss_ids[kMaxTopk];         // in ascending order
  int32_t miss_pool_rows[kMaxTopk];
  uint16_t miss_slots[kMaxTopk];
  uint64_t warp_sums[kWarp];
  int next_hand;
  int misses;
};

// A thread has the ids thread, thread + 1024, and consecutive slots from the hand on.
class ClockResolve {
 public:
  using Shared = ClockShared;

  __device__ ClockResolve(const HotSet& set, const ClockState& state, int request,
                          ClockShared& shared)
      : set_(set),
        shared_(shared),
        request_(request),
        thread_(static_cast<int>(threadIdx.x)),
        slot_of_(state.slot_of + static_cast<int64_t>(request) * set.context_rows),
        used_(state.used + static_cast<int64_t>(request) * (set.slots / kWarp)),
        hand_(state.hands + request) {}

  // Chooses the slots of missing rows: both are in shared memory on return.
  __device__ void resolve() {
    look_up();
    const int slots_per_thread = (set_.slots + kClockThreads - 1) / kClockThreads;
    const int first = thread_ * slots_per_thread;
    const int turns = min(slots_per_thread, set_.slots - first);
    const int hand = *hand_;
    ClockCounts here{};
    here.missing = rows_of_group(shared_.missing_rows, thread_);
    for (int i = 0; i < turns; ++i) {
      const int slot = turned(hand, first + i);
      if (!bit(shared_.used_now, slot)) {
        (bit(shared_.used_before, slot) ? spared_ : fresh_) |= 1U << i;
      }
    }
    here.fresh = __popc(fresh_);
    here.spared = __popc(spared_);
    ClockCounts all;
    const ClockCounts before = sum_before(here, all);
    shared_.row_ranks[thread_] = static_cast<uint16_t>(before.missing);
    if (thread_ == 0) {
      shared_.misses = all.missing;
      shared_.next_hand = hand;
    }
    __syncthreads();
    list_missing();
    choose(hand, first, turns, before, all);
    __syncthreads();
  }

  // Writes the slot of each id and the state for the next step.
  __device__ void store() {
    int32_t* rows = set_.rows + static_cast<int64_t>(request_) * set_.slots;
    int32_t* out = set_.out + static_cast<int64_t>(request_) * set_.topk;
    for (int i = thread_; i < shared_.misses; i += kClockThreads) {
      const int slot = shared_.miss_slots[i];
      replace_row(rows, slot_of_, slot, shared_.miss_ids[i]);
      set_bit(shared_.used_now, slot);
    }
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      if (ids_[turn] != kFree) {
        out[turn * kClockThreads + thread_] =
            slots_[turn] != kNotResident
                ? slots_[turn]
                : shared_.miss_slots[rank_in(shared_.missing_rows, shared_.row_ranks, ids_[turn])];
      }
    }
    __syncthreads();
    if (thread_ < set_.slots / kWarp) {
      used_[thread_] = shared_.used_before[thread_] | shared_.used_now[thread_];
    }
    if (thread_ == 0) {
      *hand_ = shared_.next_hand;
    }
  }

 private:
  static constexpr int kIdTurns = kMaxTopk / kClockThreads;
  static_assert(kMaxContextRows / kWarp == kGroupWords * kClockThreads, "a thread has one group");

  __device__ static bool bit(const uint32_t* words, int at) {
    return (words[at / kWarp] >> at % kWarp & 1) != 0;
  }

  __device__ static void set_bit(uint32_t* words, int at) {
    atomicOr(&words[at / kWarp], 1U << at % kWarp);
  }

  // The slot at this distance from the hand.
  __device__ int turned(int hand, int distance) const {
    const int slot = hand + distance;
    return slot < set_.slots ? slot : slot - set_.slots;
  }

  // Marks the slots of hits and the rows that are missing.
  __device__ void look_up() {
    const int32_t* ids = set_.ids + static_cast<int64_t>(request_) * set_.topk;
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      const int i = turn * kClockThreads + thread_;
      ids_[turn] = i < set_.topk ? ids[i] : kFree;
    }
    reinterpret_cast<uint4*>(shared_.missing_rows)[thread_] = uint4{};
    if (thread_ < set_.slots / kWarp) {
      shared_.used_now[thread_] = 0;
      shared_.used_before[thread_] = used_[thread_];
    }
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      if (ids_[turn] != kFree) {
        slots_[turn] = slot_of_[ids_[turn]];
        pool_rows_[turn] = pool_row(set_, request_, ids_[turn]);
      }
    }
    __syncthreads();
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      if (ids_[turn] != kFree) {
        if (slots_[turn] != kNotResident) {
          set_bit(shared_.used_now, slots_[turn]);
        } else {
          set_bit(shared_.missing_rows, ids_[turn]);
        }
      }
    }
    __syncthreads();
  }

  // Counts of the threads before this one, and of the whole block.
  __device__ ClockCounts sum_before(const ClockCounts& here, ClockCounts& all) {
    const int lane = lane_index();
    uint64_t sum = here.packed();
#pragma unroll
    for (int delta = 1; delta < kWarp; delta *= 2) {
      const uint64_t other = __shfl_up_sync(~0U, sum, delta);
      sum += lane >= delta ? other : 0;
    }
    if (lane == kWarp - 1) {
      shared_.warp_sums[thread_ / kWarp] = sum;
    }
    __syncthreads();
    uint64_t total = 0;
    for (int warp = 0; warp < kClockThreads / kWarp; ++warp) {
      sum += warp < thread_ / kWarp ? shared_.warp_sums[warp] : 0;
      total += shared_.warp_sums[warp];
    }
    all = ClockCounts::of(total);
    return ClockCounts::of(sum - here.packed());
  }

  // Lists the missing rows in ascending order. Repeats of an id write the same entry.
  __device__ void list_missing() {
#pragma unroll
    for (int turn = 0; turn < kIdTurns; ++turn) {
      if (ids_[turn] != kFree && slots_[turn] == kNotResident) {
        const int rank = rank_in(shared_.missing_rows, shared_.row_ranks, ids_[turn]);
        shared_.miss_ids[rank] = ids_[turn];
        shared_.miss_pool_rows[rank] = pool_rows_[turn];
      }
    }
  }

  // The hand takes fresh slots. If these are too few, all bits that it passes are cleared, and in a
  // second round it takes slots that it has spared.
  __device__ void choose(int hand, int first, int turns, const ClockCounts& before,
                         const ClockCounts& all) {
    const int spared_taken = max(all.missing - all.fresh, 0);
    int fresh = before.fresh;
    int spared = before.spared;
    for (int i = 0; i < turns; ++i) {
      const int slot = turned(hand, first + i);
      int number = all.missing;  // of the missing row that gets the slot, if any
      if ((fresh_ >> i & 1) != 0) {
        number = fresh++;
      } else if ((spared_ >> i & 1) != 0) {
        if (spared_taken > 0 || fresh < all.missing) {
          atomicAnd(&shared_.used_before[slot / kWarp], ~(1U << slot % kWarp));
        }
        number = spared < spared_taken ? all.fresh + spared : number;
        ++spared;
      }
      if (number < all.missing) {
        shared_.miss_slots[number] = static_cast<uint16_t>(slot);
      }
      if (number == all.missing - 1) {
        shared_.next_hand = turned(slot, 1);
      }
    }
  }

  const HotSet& set_;
  ClockShared& shared_;
  int request_;
  int thread_;
  uint16_t* slot_of_;
  uint32_t* used_;
  int32_t* hand_;
  int32_t ids_[kIdTurns];
  int32_t pool_rows_[kIdTurns];
  uint16_t slots_[kIdTurns];  // of the ids, or kNotResident
  uint32_t fresh_ = 0;        // a bit per slot of the thread, as in ClockCounts
  uint32_t spared_ = 0;
};
#endif
