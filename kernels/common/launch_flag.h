// Number of the launch for which a piece of work is done. It needs no reset between launches.
#pragma once

#include <cstdint>

// Padded to a cache line against false sharing.
struct alignas(64) LaunchFlag {
  uint32_t launch_id;
};
