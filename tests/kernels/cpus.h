// CPUs for the threads of a test.
#pragma once

#include <sched.h>

#include <algorithm>
#include <vector>

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
