// The CPU looks the ids up and picks the victims; a kernel gathers, a warp per miss.
#include <numeric>

#include "../common/check.h"
#include "../common/loads_first.h"
#include "../common/memory.h"
#include "operator.h"

// Where a missing row is read and written: row of the pool, and slot among those of all requests.
struct Fetch {
  int32_t place;
  int32_t slot;
};

__global__ void gather(HotSet set, const Fetch* fetches, int count) {
  const int64_t warp = warp_index();
  if (warp < count) {
    const Fetch fetch = fetches[warp];
    copy_row<Cached, kRowVectors>(slot_vectors(set, 0, fetch.slot), pool_vectors(set, fetch.place));
  }
}

// The state of one request in host memory: a list of slots in the order of use.
class UseList {
 public:
  UseList(int slots, int context_rows)
      : rows(static_cast<size_t>(slots), kFree),
        last_used(static_cast<size_t>(slots), kFree),
        slot_of_(static_cast<size_t>(context_rows), kFree),
        used_(static_cast<size_t>(context_rows + 63) / 64),
        next_(static_cast<size_t>(slots) + 1),
        previous_(static_cast<size_t>(slots) + 1),
        end_(slots) {
    std::iota(next_.begin(), next_.end(), 1);
    std::iota(previous_.begin(), previous_.end(), -1);
    next_.back() = 0;
    previous_.front() = slots;
  }

  // Does a step: `fetch(row, slot)` is called for each missing row. Writes the slot of each id.
  template <class OnMiss>
  void step(const int32_t* ids, int count, int32_t number, int32_t* out, const OnMiss& fetch) {
    for (int i = 0; i < count; ++i) {
      const int32_t id = ids[i];
      used_[static_cast<size_t>(id) / 64] |= uint64_t{1} << id % 64;
      if (slot_of(id) != kFree) {
        unlink(slot_of(id));
      }
    }
    // In the order of the ids, the rows of the step go to the end of the list.
    for (size_t word = 0; word < used_.size(); ++word) {
      for (; used_[word] != 0; used_[word] &= used_[word] - 1) {
        append(static_cast<int32_t>(word * 64) + __builtin_ctzll(used_[word]), number, fetch);
      }
    }
    for (int i = 0; i < count; ++i) {
      out[i] = slot_of(ids[i]);
    }
  }

  std::vector<int32_t> rows;
  std::vector<int32_t> last_used;

 private:
  int32_t& slot_of(int32_t id) { return slot_of_[static_cast<size_t>(id)]; }

  // Idempotent: a row may come twice in a step.
  void unlink(int32_t slot) {
    const auto at = static_cast<size_t>(slot);
    if (next_[at] != kFree) {
      next_[static_cast<size_t>(previous_[at])] = next_[at];
      previous_[static_cast<size_t>(next_[at])] = previous_[at];
      next_[at] = kFree;
    }
  }

  template <class OnMiss>
  void append(int32_t id, int32_t number, const OnMiss& fetch) {
    if (slot_of(id) == kFree) {
      const int32_t slot = next_[static_cast<size_t>(end_)];
      int32_t& row = rows[static_cast<size_t>(slot)];
      unlink(slot);
      if (row != kFree) {
        slot_of(row) = kFree;
      }
      row = id;
      slot_of(id) = slot;
      fetch(id, slot);
    }
    const int32_t slot = slot_of(id);
    const auto at = static_cast<size_t>(slot);
    last_used[at] = number;
    previous_[at] = previous_[static_cast<size_t>(end_)];
    next_[at] = end_;
    next_[static_cast<size_t>(previous_[at])] = slot;
    previous_[static_cast<size_t>(end_)] = slot;
  }

  std::vector<int32_t> slot_of_;  // of each row of the context, or kFree
  std::vector<uint64_t> used_;    // a bit per row of the context; all 0 between steps
  std::vector<int32_t> next_;     // of each slot and of the end; kFree if a slot is in no list
  std::vector<int32_t> previous_;
  int32_t end_;
};

// The requests of one layer, and staging memory for one step.
struct Layer {
  explicit Layer(const HotSet& set)
      : set(set),
        ids(static_cast<size_t>(set.requests) * static_cast<size_t>(set.topk)),
        places(static_cast<size_t>(set.requests) * static_cast<size_t>(set.context_rows)),
        staged_ids(pinned<int32_t>(ids + 1)),
        staged_out(pinned<int32_t>(ids)),
        staged_fetches(pinned<Fetch>(ids)),
        fetches(on_device<Fetch>(ids)) {
    requests.assign(static_cast<size_t>(set.requests), UseList(set.slots, set.context_rows));
    check(cudaMemcpy(places.data(), set.places, places.size() * sizeof(int32_t),
                     cudaMemcpyDeviceToHost),
          "places");
  }

  void step(cudaStream_t stream) {
    check(cudaMemcpyAsync(staged_ids.get(), set.ids, ids * sizeof(int32_t), cudaMemcpyDeviceToHost,
                          stream),
          "ids");
    check(cudaMemcpyAsync(staged_ids.get() + ids, set.step, sizeof(int32_t), cudaMemcpyDeviceToHost,
                          stream),
          "number of the step");
    check(cudaStreamSynchronize(stream), "ids");
    const int32_t number = staged_ids[static_cast<std::ptrdiff_t>(ids)];
    int count = 0;
    for (int request = 0; request < set.requests; ++request) {
      const int64_t first = static_cast<int64_t>(request) * set.topk;
      const int32_t* places_of = places.data() + static_cast<int64_t>(request) * set.context_rows;
      const auto fetch = [&](int32_t id, int32_t slot) {
        staged_fetches[count++] = {places_of[id], request * set.slots + slot};
      };
      requests[static_cast<size_t>(request)].step(staged_ids.get() + first, set.topk, number,
                                                  staged_out.get() + first, fetch);
    }
    check(cudaMemcpyAsync(set.out, staged_out.get(), ids * sizeof(int32_t), cudaMemcpyHostToDevice,
                          stream),
          "slots");
    if (count > 0) {
      check(cudaMemcpyAsync(fetches.get(), staged_fetches.get(),
                            static_cast<size_t>(count) * sizeof(Fetch), cudaMemcpyHostToDevice,
                            stream),
            "misses");
      gather<<<blocks_for(static_cast<int64_t>(count) * kWarp), kBlock, 0, stream>>>(
          set, fetches.get(), count);
    }
  }

  void publish() const {
    const size_t bytes = static_cast<size_t>(set.slots) * sizeof(int32_t);
    for (size_t request = 0; request < requests.size(); ++request) {
      const size_t first = request * static_cast<size_t>(set.slots);
      check(cudaMemcpy(set.rows + first, requests[request].rows.data(), bytes,
                       cudaMemcpyHostToDevice),
            "rows");
      check(cudaMemcpy(set.last_used + first, requests[request].last_used.data(), bytes,
                       cudaMemcpyHostToDevice),
            "last use");
    }
  }

  HotSet set;
  size_t ids;
  std::vector<int32_t> places;
  std::shared_ptr<int32_t[]> staged_ids;  // then the number of the step
  std::shared_ptr<int32_t[]> staged_out;
  std::shared_ptr<Fetch[]> staged_fetches;
  std::shared_ptr<Fetch[]> fetches;
  std::vector<UseList> requests;
};

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  std::vector<std::shared_ptr<Layer>> made;
  for (const HotSet& set : layers) {
    made.push_back(std::make_shared<Layer>(set));
  }
  Prepared prepared;
  prepared.launch = [made](int layer, cudaStream_t stream) {
    made[static_cast<size_t>(layer)]->step(stream);
  };
  prepared.publish = [made] {
    for (const auto& layer : made) {
      layer->publish();
    }
  };
  return prepared;
}
