// What test programs share: their end after a failure, CPUs for threads, and a sparse pool.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

inline void expect(bool holds, const std::string& what) {
  if (!holds) {
    std::printf("%s\n", what.c_str());
    std::fflush(stdout);
    std::_Exit(1);  // threads may wait for good
  }
}

template <class Error, class Call>
bool throws(const Call& call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

// A pool of which only rows in use take memory.
inline uint8_t* sparse_pool(size_t bytes) {
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  expect(made != MAP_FAILED, "no address space for the pool");
  return static_cast<uint8_t*>(made);
}

// Three or four CPUs that this process may use, so that there are two threads beside the caller.
// With fewer CPUs, the last one repeats.
inline std::vector<int> cpus_for_threads() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 4; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cpus.push_back(cpu);
    }
  }
  cpus.resize(std::max<size_t>(cpus.size(), 3), cpus.back());
  return cpus;
}
