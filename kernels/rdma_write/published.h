// Each thread counts in local variables and publishes them every kPublishEvery completions.
#pragma once

#include "device_path.h"

constexpr uint64_t kPublishEvery = 256;

using PublishedCounters = ShardedCounters<Padded>;

using PublishedCounters = ShardedCounters<Padded>;
