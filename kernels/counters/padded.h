// A counter for each thread, each on a cache line of its own.
#pragma once

#include "count.h"

struct alignas(64) Padded {
  std::atomic<uint64_t> value{0};
};

struct alignas(64) Counters {
  std::array<Padded, kMaxThreads> finished{};
};
