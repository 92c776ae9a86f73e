// A counter for each thread, each on a separate cache line.
#pragma once

#include "count.h"

struct alignas(64) Padded {
  std::atomic<uint64_t> value{0};
};

struct alignas(64) PaddedCounters {
  std::array<Padded, kMaxThreads> finished{};

  uint64_t total() const {
    uint64_t sum = 0;
    for (const Padded& counter : finished) {
      sum += counter.value;
    }
    return sum;
  }
};
