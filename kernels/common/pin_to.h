// Pinning of threads to cores.
#pragma once

#include <pthread.h>

#include <cstring>
#include <stdexcept>
#include <string>

// Pins the calling thread to `core`; throws std::runtime_error where it may not run there.
inline void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  const int status = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (status != 0) {
    throw std::runtime_error("pinning to core " + std::to_string(core) + ": " + strerror(status));
  }
}
