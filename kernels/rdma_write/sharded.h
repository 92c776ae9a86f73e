// Each device counts in its elements of two arrays.
#pragma once

#include "device_path.h"

// Only one thread writes a counter, so it needs no atomic increment. Returns the new value.
inline uint64_t increment(std::atomic<uint64_t>& counter) {
  const uint64_t next = counter.load(std::memory_order_relaxed) + 1;
  counter.store(next, std::memory_order_relaxed);
  return next;
}

// Posts a device's writes one at a time. `Counters` are ShardedCounters.
template <typename Counters>
class ShardedPath : public DevicePath<Counters> {
 public:
  using DevicePath<Counters>::DevicePath;

  void turn() {
    writes_.poll();
    if (device_.has_next()) {
      writes_.post([this] { complete(); });
      increment(counters_.posted[device_.index].value);
    }
  }

 private:
  using DevicePath<Counters>::device_;
  using DevicePath<Counters>::counters_;
  using DevicePath<Counters>::writes_;

  void complete() { this->report(increment(counters_.finished[device_.index].value)); }
};
