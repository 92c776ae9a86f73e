// Runs the thread that brings the CPU's claims to the kernel, while the CPU posts claims out of
// order. Ends with 1 and says so if the thread goes on after both sides have met.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "block_on_cpu.h"

inline int64_t clock64() { return 0; }
template <class Vector>
Vector __ldcs(const Vector* from) {
  return *from;
}
template <class Vector>
void __stcs(Vector* to, const Vector& vector) {
  *to = vector;
}

#include "miss_fetch.h"

namespace {

constexpr uint32_t kLaunch = 3;
constexpr uint32_t kEnd = 1000;

void post(LaunchValue& value, uint32_t number) {
  __atomic_store_n(&value.word, tagged(kLaunch, number), __ATOMIC_RELAXED);
}

}  // namespace

int main() {
  LaunchValue by_cpu{tagged(kLaunch - 1, 5)};  // of the previous launch
  uint32_t claimed = 0;
  uint32_t claimed_by_cpu = kEnd;
  Misses misses{};
  misses.claimed = &claimed;
  misses.claimed_by_cpu = &claimed_by_cpu;
  MissRequests requests{};
  requests.by_cpu = &by_cpu;
  requests.launch_id = kLaunch;
  bool has_ended = false;
  std::thread watching([&] {
    MissFetch<16>{misses, requests}.watch_cpu(0, kEnd);
    __atomic_store_n(&has_ended, true, __ATOMIC_RELEASE);
  });
  constexpr uint32_t kLowest = 600;
  post(by_cpu, kLowest);
  while (__atomic_load_n(&claimed_by_cpu, __ATOMIC_RELAXED) != kLowest) {
    std::this_thread::yield();
  }
  post(by_cpu, 800);  // by a thread that took its rows earlier
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The warps have seen the lowest claim: they end there.
  __atomic_store_n(&claimed, kLowest, __ATOMIC_RELAXED);
  for (int turn = 0; turn < 2000 && !__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE) || claimed_by_cpu != kLowest) {
    std::puts("the thread that watches the CPU has missed that both sides have met");
    std::fflush(stdout);
    std::_Exit(1);
  }
  watching.join();
}
