// Packs, shares and answers launches of a pool beyond 4 GiB with a runtime that has no GPU, and
// compares every byte of the destination. Ends with 1 and says so where one differs. With the
// argument `tune`, which takes longer, looks for the fastest division of launches instead.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../cpus.h"
#include "../cudart.h"
#include "packer.h"
#include "request_packer.h"
#include "sharing.h"
#include "sort_bits.h"
#include "sparse_pool.h"

namespace {

constexpr size_t kPoolBytes = size_t{5} << 30;
constexpr int64_t kPoolRows = kPoolBytes / kRowBytes;
constexpr uint8_t kPoison = 0xA5;
constexpr size_t kGuard = 4096;

std::mt19937 rng(1);

enum class Order { kGiven, kReversed, kShuffled };

// Launches of `rows` rows from all over the pool, and where they go.
struct Launches {
  Launches(uint8_t* pool, int64_t rows, size_t sets, Order order)
      : pairs(sets, std::vector<int2>(static_cast<size_t>(rows))),
        dst(static_cast<size_t>(rows) * kRowBytes + kGuard) {
    std::vector<int> to(static_cast<size_t>(rows));
    std::iota(to.begin(), to.end(), 0);
    for (std::vector<int2>& set : pairs) {
      if (order == Order::kReversed) {
        std::reverse(to.begin(), to.end());
      } else if (order == Order::kShuffled) {
        std::shuffle(to.begin(), to.end(), rng);
      }
      for (size_t i = 0; i < set.size(); ++i) {
        set[i] = {static_cast<int>(rng() % kPoolRows), to[i]};
        uint8_t* row = pool + int64_t{set[i].x} * kRowBytes;
        for (int byte = 0; byte < kRowBytes; byte += 4) {
          const uint32_t word = rng();
          std::memcpy(row + byte, &word, sizeof word);
        }
      }
      gathers.push_back(
          {pool, kPoolRows, dst.data(), set.data(), rows, set[0].x, nullptr, nullptr});
    }
  }

  void poison() { std::fill(dst.begin(), dst.end(), kPoison); }

  void check(const Gather& gather, const std::string& what) const {
    for (int64_t i = 0; i < gather.rows; ++i) {
      const int2 pair = gather.pairs[i];
      const uint8_t* from = gather.pool + int64_t{pair.x} * kRowBytes;
      const uint8_t* to = dst.data() + int64_t{pair.y} * kRowBytes;
      expect(std::memcmp(from, to, kRowBytes) == 0,
             what + ": row " + std::to_string(i) + " differs");
    }
    const auto guard = dst.end() - kGuard;
    expect(std::all_of(guard, dst.end(), [](uint8_t byte) { return byte == kPoison; }),
           what + ": written behind the destination");
  }

  std::vector<std::vector<int2>> pairs;
  std::vector<uint8_t> dst;
  std::vector<Gather> gathers;
};

void launch_all(Launches& launches, const Launch& launch, const std::string& what) {
  for (const Gather& gather : launches.gathers) {
    launches.poison();
    launch(gather, nullptr);
    cudaStreamSynchronize(nullptr);
    launches.check(gather, what);
  }
}

// Does what the SMs do, when their stream gets to it.
void enqueue_rows(const Gather& gather, cudaStream_t stream) {
  for (int64_t i = 0; i < gather.rows; ++i) {
    const int2 pair = gather.pairs[i];
    cudaMemcpyAsync(destination_bytes(gather, pair.y), source_bytes(gather, pair.x), kRowBytes,
                    cudaMemcpyHostToDevice, stream);
  }
}

void pack_and_share(uint8_t* pool, int64_t rows, Order order, const std::vector<int>& cpus) {
  const std::string what = std::to_string(rows) + " rows";
  Launches launches(pool, rows, 4, order);
  Packer packer(rows, cpus);
  const auto pack = [&](const Gather& gather, cudaStream_t stream) {
    packer.fetch(gather, stream);
    packer.pack(gather, stream);
  };
  launch_all(launches, pack, what + " packed");
  std::this_thread::sleep_for(2 * kSpin);  // the threads sleep now
  launch_all(launches, pack, what + " packed by threads that slept");

  Sharing sharing(rows, cpus, [&](int64_t by_sms) -> Launch {
    return [by_sms](const Gather& gather, cudaStream_t stream) {
      expect(gather.rows == by_sms, "the SMs were given other rows than they were prepared for");
      enqueue_rows(gather, stream);
    };
  });
  const auto share = [&](const Gather& gather, cudaStream_t stream) {
    sharing.launch(gather, stream);
  };
  for (const int64_t by_sms : {int64_t{0}, rows / 3, rows}) {
    sharing.divide(by_sms);
    launch_all(launches, share, what + ", " + std::to_string(by_sms) + " of them by the SMs");
  }
}

void tune(uint8_t* pool, int64_t rows, const std::vector<int>& cpus) {
  const std::string what = std::to_string(rows) + " rows";
  Launches launches(pool, rows, 4, Order::kGiven);
  std::vector<int64_t> tried;
  Sharing sharing(rows, cpus, [&](int64_t by_sms) -> Launch {
    tried.push_back(by_sms);
    return enqueue_rows;
  });
  sharing.tune(launches.gathers);
  for (const int share : kSharesOfSms) {
    const int64_t by_sms = rows * share / kShares;
    expect(by_sms == 0 || std::count(tried.begin(), tried.end(), by_sms) > 0,
           what + ": " + std::to_string(by_sms) + " of them by the SMs were not tried");
  }
  const auto share = [&](const Gather& gather, cudaStream_t stream) {
    sharing.launch(gather, stream);
  };
  launch_all(launches, share, what + " shared");
}

void share_with_slow_sms(uint8_t* pool, const std::vector<int>& cpus) {
  constexpr int64_t kRows = 2048;
  Launches launches(pool, kRows, 4, Order::kGiven);
  int by_sms = 0;
  std::chrono::steady_clock::duration late{};
  Sharing sharing(kRows, cpus, [&](int64_t) -> Launch {
    return [&](const Gather& gather, cudaStream_t stream) {
      ++by_sms;
      std::this_thread::sleep_for(late);
      enqueue_rows(gather, stream);
    };
  });
  const auto share = [&](const Gather& gather, cudaStream_t stream) {
    sharing.launch(gather, stream);
  };
  const auto begin = std::chrono::steady_clock::now();
  launch_all(launches, share, "by the CPU alone");
  late = std::chrono::steady_clock::now() - begin;  // longer than any of its launches
  sharing.tune(launches.gathers);
  by_sms = 0;
  launch_all(launches, share, "beside slow SMs");
  expect(by_sms == 0, "SMs that are slower than the CPU alone were given rows");
}

// Threads that wait for room in the ring must not wait for good.
void fail_to_send(uint8_t* pool, const std::vector<int>& cpus) {
  constexpr int64_t kRows = 2048;
  Launches launches(pool, kRows, 1, Order::kGiven);
  Packer packer(kRows, cpus);
  const auto pack = [&](const Gather& gather, cudaStream_t stream) {
    packer.fetch(gather, stream);
    packer.pack(gather, stream);
  };
  bool failed = false;
  copies_until_failure = 2;  // the pairs and some rows arrive
  try {
    pack(launches.gathers[0], nullptr);
  } catch (const std::runtime_error&) {
    failed = true;
  }
  expect(failed, "a failed copy was not reported");
  copies_until_failure = -1;
  launch_all(launches, pack, "after a failure");
}

// Does what a kernel does that requests its rows.
void read_as_packed(const Gather& gather, const Requests& requests) {
  for (int64_t i = 0; i < gather.rows; ++i) {
    const uint64_t request =
        uint64_t{requests.launch_id} << 32 | static_cast<uint32_t>(gather.pairs[i].x);
    // Threads read the word a second time, as it is.
    __atomic_store_n(&requests.rows[i], request, __ATOMIC_RELEASE);
  }
  for (int64_t i = 0; i < gather.rows; ++i) {
    const int64_t piece = i / requests.piece_rows;
    const int64_t row =
        piece % requests.ring_pieces * requests.piece_rows + i % requests.piece_rows;
    while (__atomic_load_n(&requests.packed[piece].launch_id, __ATOMIC_ACQUIRE) !=
           requests.launch_id) {
      std::this_thread::yield();
    }
    std::memcpy(destination_bytes(gather, gather.pairs[i].y), requests.staging + row * kRowBytes,
                kRowBytes);
    if (i % requests.piece_rows == requests.piece_rows - 1) {
      __atomic_store_n(&requests.read[piece].launch_id, requests.launch_id, __ATOMIC_RELEASE);
    }
  }
}

void answer(uint8_t* pool, int64_t rows, Order order, const std::vector<int>& cpus) {
  const std::string what = std::to_string(rows) + " rows";
  Launches launches(pool, rows, 4, order);
  RequestPacker packer(rows, cpus);
  const auto launch = [&](const Gather& gather, cudaStream_t stream) {
    std::thread kernel;
    packer.launch(gather, stream, [&](const Requests& requests) {
      kernel = std::thread(read_as_packed, gather, requests);
    });
    kernel.join();
  };
  launch_all(launches, launch, what + " requested");
  packer.flush(launches.gathers[0]);
  std::this_thread::sleep_for(2 * kSpin);  // the threads sleep now
  launch_all(launches, launch, what + " requested from threads that slept");

  Gather nothing = launches.gathers[0];
  nothing.rows = 0;
  packer.launch(nothing, nullptr, [&](const Requests& requests) {
    expect(requests.pieces == 0, "pieces of no rows");
  });

  // Threads must not wait for good for a kernel that was not launched, or has failed.
  const auto not_launched = [](const Requests&) {};
  last_error = cudaErrorInvalidConfiguration;
  packer.launch(launches.gathers[0], nullptr, not_launched);
  last_error = cudaSuccess;
  launch_all(launches, launch, what + " after a kernel that was not launched");
  packer.launch(launches.gathers[0], nullptr, not_launched);
  event_status = cudaErrorIllegalAddress;
  bool failed = false;
  try {
    packer.launch(launches.gathers[0], nullptr, not_launched);
  } catch (const std::runtime_error&) {
    failed = true;
  }
  expect(failed, "a failed kernel was not reported");
  event_status = cudaSuccess;
  launch_all(launches, launch, what + " after a kernel that has failed");
  packer.launch(launches.gathers[0], nullptr, not_launched);  // and so it ends
}

void expect_bits(Bits got, int low, int high, const std::string& what) {
  expect(got.low == low && got.high == high,
         what + ": bits " + std::to_string(got.low) + " to " + std::to_string(got.high));
}

void expect_sort_bits() {
  expect_bits(all_bits(1), 0, 0, "a pool of one row");
  expect_bits(all_bits(2), 0, 1, "a pool of two rows");
  expect_bits(all_bits((1 << 20) + 1), 0, 21, "a pool of a row more than 2^20");
  const int64_t rows_of_gib = (int64_t{1} << 30) / kSlotBytes;
  expect_bits(sort_bits(262144, 40 * rows_of_gib), 18, 26, "40 GiB");
  expect_bits(sort_bits(262144, rows_of_gib), 18, 21, "1 GiB");
  expect_bits(sort_bits(262144, rows_of_gib / 2), 0, 0, "what the GPU holds");
  expect_bits(sort_bits(8192, 40 * rows_of_gib), 0, 0, "as many rows as it holds translations");
  expect_bits(sort_bits(8193, 40 * rows_of_gib), 18, 26, "a row more");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<int> cpus = cpus_for_threads();
  uint8_t* pool = sparse_pool(kPoolBytes);
  if (argc > 1 && argv[1] == std::string("tune")) {
    for (const int64_t rows : {1, 17, 2048}) {
      tune(pool, rows, cpus);
    }
    share_with_slow_sms(pool, cpus);
    return 0;
  }
  expect_sort_bits();
  for (const int64_t rows : {1, 15, 16, 17, 65, 1000, 2048}) {
    pack_and_share(pool, rows, Order::kGiven, cpus);
    answer(pool, rows, Order::kGiven, cpus);
  }
  pack_and_share(pool, 300, Order::kReversed, cpus);
  pack_and_share(pool, 300, Order::kShuffled, cpus);
  answer(pool, 300, Order::kShuffled, cpus);
  fail_to_send(pool, cpus);
  bool refused = false;
  try {
    Packer(64, {cpus[0]});
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  expect(refused, "a packer without a thread");
}
