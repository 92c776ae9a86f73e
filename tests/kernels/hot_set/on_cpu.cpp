// A library with the kernels of a variant, VARIANT, on the CPU, and with the parts that let the CPU
// and a kernel share the misses.
#include <chrono>
#include <thread>

#include "block_on_cpu.h"

#include VARIANT

#include "miss_fetch.h"
#include "share_model.h"

extern "C" {

// The variant, prepared for a hot set of one layer. It is never freed.
void* prepared(const HotSet* set) { return new Prepared(prepare({*set}, {})); }

void do_step(void* variant) { static_cast<Prepared*>(variant)->launch(0, nullptr); }

// Of `rows` rows, those that SMs read in place.
int64_t rows_in_place(int64_t pool_mib, int64_t threads, int fixed_32nds, int64_t rows) {
  const float packed_row_s = 180e-9F / static_cast<float>(threads);
  return ShareModel{pool_mib << 20, 656, packed_row_s, 10e-6F, fixed_32nds}.rows_in_place(rows);
}

// Whether the kernel's thread that watches the CPU's claims ends once both sides have met, although
// the CPU posts a higher claim after a lower one.
bool meets() {
  constexpr uint32_t kLaunch = 3, kEnd = 1000, kLowest = 600;
  LaunchValue by_cpu{tagged(kLaunch - 1, 5)};  // of the previous launch
  const auto post = [&](uint32_t number) {
    __atomic_store_n(&by_cpu.word, tagged(kLaunch, number), __ATOMIC_RELAXED);
  };
  uint32_t claimed = 0, claimed_by_cpu = kEnd;
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
  post(kLowest);
  while (__atomic_load_n(&claimed_by_cpu, __ATOMIC_RELAXED) != kLowest) {
    std::this_thread::yield();
  }
  post(800);  // by a thread that took its rows earlier
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The warps have seen the lowest claim: they end there.
  __atomic_store_n(&claimed, kLowest, __ATOMIC_RELAXED);
  for (int turn = 0; turn < 2000 && !__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool has_met = __atomic_load_n(&has_ended, __ATOMIC_ACQUIRE) && claimed_by_cpu == kLowest;
  has_met ? watching.join() : std::_Exit(1);  // the thread uses the stack of this function
  return has_met;
}
}
