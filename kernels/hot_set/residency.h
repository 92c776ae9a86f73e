// Which rows of each context are in the hot set, by row, and the order in which they leave it. With
// them, a look-up is one load, and neither the ids are hashed nor the hot set is scanned.
#pragma once

#include "../common/check.h"
#include "../common/memory.h"
#include "operator.h"

constexpr uint16_t kAbsent = 0xFFFF;   // slot of a row that is not in the hot set
constexpr uint16_t kClaimed = 0xFFFE;  // slot of a missing row that a thread has claimed

// Scratch memory of a layer that outlives steps.
struct Residency {
  uint16_t* slot_of_row;  // [requests, context_rows]: slot of each row, or kAbsent
  uint16_t* idle;         // [requests, slots]: slots that the latest step did not use, oldest first
  int* idle_count;        // [requests]
  uint32_t* used;         // [requests, slots / 32]: a bit per slot that the latest step used
};

// The same of all layers.
struct Residencies {
  std::shared_ptr<uint16_t[]> slot_of_row;
  std::shared_ptr<uint16_t[]> idle;
  std::shared_ptr<int[]> idle_count;
  std::shared_ptr<uint32_t[]> used;

  Residency of_layer(const HotSet& set, int layer) const {
    const int64_t first = static_cast<int64_t>(layer) * set.requests;
    return {slot_of_row.get() + first * set.context_rows, idle.get() + first * set.slots,
            idle_count.get() + first, used.get() + first * (set.slots / 32)};
  }
};

template <class T>
std::shared_ptr<T[]> copied_to_device(const std::vector<T>& values) {
  auto made = on_device<T>(values.size());
  check(cudaMemcpy(made.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "scratch in device memory");
  return made;
}

// Residencies of layers whose slots are all free.
inline Residencies new_residencies(const std::vector<HotSet>& layers) {
  const HotSet& set = layers.front();
  const size_t requests = layers.size() * static_cast<size_t>(set.requests);
  const auto slots = static_cast<size_t>(set.slots);
  std::vector<uint16_t> idle(requests * slots);
  for (size_t i = 0; i < idle.size(); ++i) {
    idle[i] = static_cast<uint16_t>(i % slots);
  }
  const size_t rows = requests * static_cast<size_t>(set.context_rows);
  Residencies made = {on_device<uint16_t>(rows), copied_to_device(idle),
                      copied_to_device(std::vector<int>(requests, set.slots)),
                      copied_to_device(std::vector<uint32_t>(requests * slots / 32))};
  check(cudaMemset(made.slot_of_row.get(), 0xFF, rows * sizeof(uint16_t)), "slots of rows");
  return made;
}
