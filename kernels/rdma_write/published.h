// A path counts in variables of its own, and publishes them once in kPublishEvery completions.
#pragma once

#include "pinned_threads.h"

constexpr uint64_t kPublishEvery = 256;

struct alignas(64) Padded {
  std::atomic<uint64_t> value{0};
};

using PublishedCounters = ShardedCounters<Padded>;
