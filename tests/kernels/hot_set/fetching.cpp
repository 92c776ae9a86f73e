// How the CPU and a kernel share the misses: properties of the chosen share, and the kernel's
// thread that watches the CPU's claims. Ends with 1 and says what is wrong.
#include <chrono>
#include <thread>

#include "../expect.h"
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
#include "share_model.h"

namespace {

ShareModel model(int64_t pool_mib, int64_t threads = 14, int fixed_32nds = kChosen) {
  const float packed_row_s = 180e-9F / static_cast<float>(threads);
  return {pool_mib << 20, kRowBytes, packed_row_s, 10e-6F, fixed_32nds};
}

void expect_share(int64_t pool_mib, int64_t rows) {
  const std::string what = std::to_string(rows) + " rows of " + std::to_string(pool_mib) + " MiB: ";
  const int64_t in_place = model(pool_mib).rows_in_place(rows);
  expect(in_place >= 0 && in_place <= rows, what + "a share beyond the rows");
  // Rounding may move a row.
  expect(model(2 * pool_mib).rows_in_place(rows) <= in_place + 1,
         what + "a larger pool has more of them in place");
  expect(model(pool_mib, 2).rows_in_place(rows) + 1 >= in_place,
         what + "with fewer threads, fewer are in place");
  expect(model(pool_mib, 14, 8).rows_in_place(rows) == rows / 4, what + "a given share is changed");
  expect(pool_mib > 512 || in_place == rows, what + "within the reach of the TLB, some are packed");
}

// The thread ends once both sides have met, although the CPU posts a higher claim after a lower
// one.
void expect_meeting() {
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
  expect(__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE) && claimed_by_cpu == kLowest,
         "the thread that watches the CPU has missed that both sides have met");
  watching.join();
}

}  // namespace

int main() {
  for (const int64_t pool_mib : {1, 188, 512, 2048, 8192, 24576, 40960, 262144}) {
    for (const int64_t rows : {1, 2, 100, 300, 1500, 8000, 41000, 204800}) {
      expect_share(pool_mib, rows);
    }
    expect(model(pool_mib).rows_in_place(0) == 0, "a share of no rows");
    expect(model(pool_mib).rows_in_place(2) == 2, "few rows wait for the CPU");
  }
  expect(model(40960).rows_in_place(41000) < 41000 / 2, "page walks are not avoided");
  expect_meeting();
}
