// Launches from a pool beyond 4 GiB whose rows threads pack, with a runtime that has no GPU: every
// byte that arrives. Ends with 1 and says so where one differs. The first argument says how rows
// get to the GPU: pack, request or miss; or tune, which looks for the fastest division of launches.
// The others are CPUs.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>
#include <thread>

#include "../cudart.h"
#include "hot_set/miss_packer.h"
#include "pool_gather/packer.h"
#include "pool_gather/request_packer.h"
#include "pool_gather/sharing.h"

namespace {

void expect(bool holds, const std::string& what) {
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
uint8_t* sparse_pool(size_t bytes) {
  constexpr int kSparse = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kSparse, -1, 0);
  expect(made != MAP_FAILED, "no address space for the pool");
  return static_cast<uint8_t*>(made);
}

constexpr size_t kPoolBytes = size_t{5} << 30;
constexpr int64_t kPoolRows = kPoolBytes / kRowBytes;
constexpr uint8_t kPoison = 0xA5;
constexpr size_t kGuard = 4096;
constexpr int64_t kShuffledRows = 300;
constexpr int64_t kEndless = int64_t{1} << 62;

std::vector<int> cpus;  // of the caller and of threads
uint8_t* const pool = sparse_pool(kPoolBytes);
std::mt19937 rng(1);

// Launches of `rows` rows from all over the pool, which go to consecutive rows or, if they are
// kShuffledRows, anywhere.
struct Launches {
  explicit Launches(int64_t rows, size_t sets = 4)
      : pairs(sets, std::vector<int2>(static_cast<size_t>(rows))),
        dst(static_cast<size_t>(rows) * kRowBytes + kGuard) {
    std::vector<int> to(static_cast<size_t>(rows));
    std::iota(to.begin(), to.end(), 0);
    for (std::vector<int2>& set : pairs) {
      if (rows == kShuffledRows) {
        std::shuffle(to.begin(), to.end(), rng);
      }
      for (size_t i = 0; i < set.size(); ++i) {
        set[i] = {static_cast<int>(rng() % kPoolRows), to[i]};
        uint8_t* row = pool + int64_t{set[i].x} * kRowBytes;
        std::generate(row, row + kRowBytes, [] { return static_cast<uint8_t>(rng()); });
      }
      const int first = rows == 0 ? 0 : set[0].x;
      gathers.push_back({pool, kPoolRows, dst.data(), set.data(), rows, first, nullptr, nullptr});
    }
  }

  void run(const std::string& what, const Launch& launch) {
    for (const Gather& gather : gathers) {
      std::fill(dst.begin(), dst.end(), kPoison);
      launch(gather, nullptr);
      cudaStreamSynchronize(nullptr);
      std::vector<uint8_t> right(dst.size(), kPoison);
      for (const int2* pair = gather.pairs; pair != gather.pairs + gather.rows; ++pair) {
        std::memcpy(right.data() + int64_t{pair->y} * kRowBytes,
                    pool + int64_t{pair->x} * kRowBytes, kRowBytes);
      }
      expect(dst == right, std::to_string(gather.rows) + " rows " + what + " differ");
    }
  }

  std::vector<std::vector<int2>> pairs;
  std::vector<uint8_t> dst;
  std::vector<Gather> gathers;
};

void copy_row(const Gather& gather, int64_t i, const uint8_t* from) {
  std::memcpy(destination_bytes(gather, gather.pairs[i].y), from, kRowBytes);
}

// Does what the SMs do, when their stream gets to it.
void enqueue_rows(const Gather& gather, cudaStream_t stream) {
  for (int64_t i = 0; i < gather.rows; ++i) {
    cudaMemcpyAsync(destination_bytes(gather, gather.pairs[i].y),
                    source_bytes(gather, gather.pairs[i].x), kRowBytes, cudaMemcpyHostToDevice,
                    stream);
  }
}

void fall_asleep() { std::this_thread::sleep_for(2 * kSpin); }

void pack(int64_t rows) {
  Launches launches(rows);
  Packer packer(rows, cpus);
  const auto launch = [&](const Gather& gather, cudaStream_t stream) {
    packer.fetch(gather, stream);
    packer.pack(gather, stream);
  };
  launches.run("packed", launch);
  fall_asleep();
  launches.run("packed by threads that slept", launch);
  if (rows > 1000) {  // threads that wait for room in the ring must not wait for good
    fail_at(3);       // the pairs and some rows arrive
    expect(throws<std::runtime_error>([&] { launch(launches.gathers[0], nullptr); }),
           "a failed copy was not reported");
    fail_at(-1);
    launches.run("packed after a failure", launch);
  }
  Sharing sharing(rows, cpus, [](int64_t) -> Launch { return enqueue_rows; });
  for (const int64_t by_sms : {int64_t{0}, rows / 3, rows}) {
    sharing.divide(by_sms);
    launches.run("shared", [&](const Gather& gather, cudaStream_t stream) {
      sharing.launch(gather, stream);
    });
  }
}

// SMs that are slower than the CPU alone get no rows.
void tune(int64_t rows) {
  Launches launches(rows);
  int by_sms = 0;
  std::chrono::steady_clock::duration late{};
  Sharing sharing(rows, cpus, [&](int64_t) -> Launch {
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
  launches.run("by the CPU alone", share);
  late = std::chrono::steady_clock::now() - begin;  // longer than any of its launches
  sharing.tune(launches.gathers);
  by_sms = 0;
  launches.run("beside slow SMs", share);
  expect(by_sms == 0, "SMs that are slower than the CPU alone were given rows");
}

// Waits until a piece of a launch is packed, with a kernel's patience.
bool await(const LaunchFlag& packed, uint32_t launch_id, int64_t patience = kEndless) {
  for (int64_t turn = 0; turn < patience; ++turn) {
    if (__atomic_load_n(&packed.launch_id, __ATOMIC_ACQUIRE) == launch_id) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

template <class Requests>
void request_row(const Gather& gather, const Requests& requests, int64_t i) {
  const auto row = static_cast<uint32_t>(gather.pairs[i].x);
  // Threads read the word a second time, as it is.
  __atomic_store_n(&requests.rows[i], tagged(requests.launch_id, row), __ATOMIC_RELEASE);
}

// Does what a kernel does that requests its rows.
void read_as_packed(const Gather& gather, const Requests& requests) {
  for (int64_t i = 0; i < gather.rows; ++i) {
    request_row(gather, requests, i);
  }
  for (int64_t i = 0; i < gather.rows; ++i) {
    const int64_t piece = i / requests.piece_rows;
    const int64_t row =
        piece % requests.ring_pieces * requests.piece_rows + i % requests.piece_rows;
    await(requests.packed[piece], requests.launch_id);
    copy_row(gather, i, requests.staging + row * kRowBytes);
    if (i % requests.piece_rows == requests.piece_rows - 1) {
      __atomic_store_n(&requests.read[piece].launch_id, requests.launch_id, __ATOMIC_RELEASE);
    }
  }
}

// How a kernel treats its misses: those before `first` are read in place, and with `meets`, further
// ones until it meets the CPU.
struct Misses {
  uint32_t first = 0;
  bool meets = false;
  int64_t patience = kEndless;

  void read(const Gather& gather, const MissRequests& requests) const {
    const auto end = static_cast<uint32_t>(gather.rows);
    __atomic_store_n(&requests.end->word, tagged(requests.launch_id, end), __ATOMIC_RELEASE);
    __atomic_store_n(&requests.first->word, tagged(requests.launch_id, first), __ATOMIC_RELEASE);
    for (int64_t i = end; i-- > 0;) {
      std::this_thread::yield();
      request_row(gather, requests, i);
    }
    read_in_place(gather, 0, first);
    const Pieces pieces(end - first, requests.ring_rows);
    uint32_t claimed = first;
    for (int64_t piece = 0; piece < pieces.count; ++piece) {
      const int64_t row = piece * pieces.piece_rows;
      const int64_t top = end - row;  // follows the piece's requests, which lie in reverse order
      if (meets && (claimed = read_until_met(gather, requests, claimed, top)) >= top) {
        break;
      }
      if (!await(requests.packed[piece], requests.launch_id, patience)) {
        continue;
      }
      for (int64_t i = 0; i < std::min(pieces.piece_rows, pieces.rows - row); ++i) {
        const int64_t place = pieces.ring_row(row) + i;
        copy_row(gather, top - 1 - i, requests.staging + place * kRowBytes);
      }
      __atomic_store_n(&requests.read[piece].launch_id, requests.launch_id, __ATOMIC_RELEASE);
    }
  }

  // Reads the next requests in place, a few at a time, unless the CPU has claimed them. Returns the
  // first request that is not claimed.
  static uint32_t read_until_met(const Gather& gather, const MissRequests& requests,
                                 uint32_t claimed, int64_t end) {
    constexpr uint32_t kRowsAtOnce = 5;
    const uint64_t word = __atomic_load_n(&requests.by_cpu->word, __ATOMIC_RELAXED);
    const bool is_met = word >> 32 == requests.launch_id && static_cast<uint32_t>(word) <= claimed;
    const auto last =
        static_cast<uint32_t>(is_met ? claimed : std::min<int64_t>(claimed + kRowsAtOnce, end));
    __atomic_store_n(&requests.in_place->word, tagged(requests.launch_id, last), __ATOMIC_RELAXED);
    read_in_place(gather, claimed, last);
    return last;
  }

  static void read_in_place(const Gather& gather, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      copy_row(gather, i, source_bytes(gather, gather.pairs[i].x));
    }
  }
};

// Runs all launches, also after the threads slept. Threads must not wait for good for a kernel that
// was not launched, has failed, or has ended.
template <class All, class Flush, class Nothing>
void survive(const All& launch_all, const Flush& flush, const Nothing& launch_nothing) {
  launch_all("");
  flush();
  fall_asleep();
  launch_all(" by threads that slept");
  last_error = cudaErrorInvalidConfiguration;
  launch_nothing();
  last_error = cudaSuccess;
  launch_all(" after a kernel that was not launched");
  launch_nothing();
  event_status = cudaErrorIllegalAddress;
  expect(throws<std::runtime_error>(launch_nothing), "a failed kernel was not reported");
  event_status = cudaSuccess;
  launch_all(" after a kernel that has failed");
  launch_nothing();  // and so it ends
}

void request(int64_t rows) {
  Launches launches(rows);
  RequestPacker packer(rows, cpus);
  const auto launch_all = [&](const std::string& when) {
    launches.run("requested" + when, [&](const Gather& gather, cudaStream_t stream) {
      std::thread kernel;
      packer.launch(gather, stream, [&](const Requests& requests) {
        kernel = std::thread(read_as_packed, gather, requests);
      });
      kernel.join();
    });
  };
  survive(
      launch_all, [&] { packer.flush(launches.gathers[0]); },
      [&] { packer.launch(launches.gathers[0], nullptr, [](const Requests&) {}); });
}

void miss(int64_t max_rows) {
  MissPacker<kRowBytes> packer(pool, max_rows, cpus);
  const auto no_kernel = [](const MissRequests&) {};
  const auto launch_all = [&](const std::string& when) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, max_rows / 3, max_rows}) {
      Launches launches(rows, 1);
      for (const Misses& misses :
           {Misses{}, Misses{static_cast<uint32_t>(rows / 2)}, Misses{0, true}}) {
        launches.run("missed" + when, [&](const Gather& gather, cudaStream_t stream) {
          std::thread kernel;
          const auto start = [&](const MissRequests& requests) {
            kernel = std::thread([=] { misses.read(gather, requests); });
          };
          packer.launch(stream, start, no_kernel);
          kernel.join();
        });
      }
    }
  };
  const Launches launches(max_rows, 1);
  packer.launch(
      nullptr,
      [&](const MissRequests& requests) {
        Misses{0, false, 0}.read(launches.gathers[0], requests);
      },
      no_kernel);  // it has lost patience
  survive(
      launch_all, [&] { packer.flush({0, 1, kPoolRows - 1}); },
      [&] { packer.launch(nullptr, no_kernel, no_kernel); });
}

}  // namespace

int main(int count, char** arguments) {
  be_late();
  const std::string how = arguments[1];
  std::transform(arguments + 2, arguments + count, std::back_inserter(cpus), std::atoi);
  expect(throws<std::invalid_argument>([] { Packer(64, {cpus[0]}); }), "no thread packs");
  if (how == "miss") {
    for (const int64_t max_rows : {1, 9, 65, 300}) {
      miss(max_rows);
    }
  } else if (how == "tune") {
    tune(2048);
  } else {
    for (const int64_t rows : {1, 15, 16, 17, 65, 300, 1000, 2048}) {
      (how == "pack" ? pack : request)(rows);
    }
  }
}
