// Random actions on p4_final, everything checked after each: allocator_states OPERATIONS SEED
#include <cstdio>
#include <cstdlib>

#include "state_check.h"

int main(int count, char** arguments) {
  const uint64_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 20000;
  const uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  constexpr uint64_t kBurst = 500;
  for (uint64_t done = 0; done < operations; done += kBurst) {
    const uint64_t burst_seed = seed * 1000003 + done;
    try {
      StateCheck states(size_t{256} << 20);
      states.burst(burst_seed, kBurst, 12 + burst_seed % 15);
      states.drain();
    } catch (const std::exception& error) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(burst_seed), error.what());
      return 1;
    }
  }
  std::printf("%llu operations\n", static_cast<unsigned long long>(operations));
  return 0;
}
