// Answers requests of a made-up kernel with a runtime that has no GPU, and compares every byte.
// Ends with 1 and says so where one differs, or where a thread waits for ever.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../cpus.h"
#include "../cudart.h"
#include "../pool_gather/sparse_pool.h"
#include "miss_packer.h"

namespace {

constexpr int kBytes = ROW_BYTES;
constexpr size_t kPoolBytes = size_t{5} << 30;
constexpr uint32_t kPoolRows = kPoolBytes / kBytes;

std::mt19937 rng(1);

std::vector<uint32_t> filled_rows(uint8_t* pool, int64_t count) {
  std::vector<uint32_t> rows(static_cast<size_t>(count));
  for (uint32_t& row : rows) {
    row = rng() % kPoolRows;
    for (int byte = 0; byte < kBytes; byte += 4) {
      const uint32_t word = rng();
      std::memcpy(pool + int64_t{row} * kBytes + byte, &word, sizeof word);
    }
  }
  return rows;
}

// Waits for a piece, with a kernel's patience.
bool await(const MissRequests& requests, int64_t piece, int64_t patience) {
  for (int64_t turn = 0; turn < patience; ++turn) {
    if (__atomic_load_n(&requests.packed[piece].launch_id, __ATOMIC_ACQUIRE) ==
        requests.launch_id) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

constexpr int64_t kEndless = int64_t{1} << 62;

// Reads the next requests in place, a few at a time, unless the CPU has claimed them. Returns the
// first request that is not claimed.
uint32_t read_until_met(const MissRequests& requests, const std::vector<uint32_t>& rows,
                        const uint8_t* pool, uint32_t claimed, int64_t end,
                        std::vector<uint8_t>& copied) {
  constexpr uint32_t kRowsAtOnce = 5;
  const uint64_t word = __atomic_load_n(&requests.by_cpu->word, __ATOMIC_RELAXED);
  const bool is_met = word >> 32 == requests.launch_id && static_cast<uint32_t>(word) <= claimed;
  const int64_t last = is_met ? claimed : std::min<int64_t>(claimed + kRowsAtOnce, end);
  __atomic_store_n(&requests.in_place->word,
                   tagged(requests.launch_id, static_cast<uint32_t>(last)), __ATOMIC_RELAXED);
  for (; claimed < last; ++claimed) {
    std::memcpy(copied.data() + int64_t{claimed} * kBytes, pool + int64_t{rows[claimed]} * kBytes,
                kBytes);
  }
  return claimed;
}

// Does a kernel's part: requests all rows, the last one first, and copies those from `first` on,
// but for pieces that take longer than its patience.
std::vector<uint8_t> kernel(const MissRequests& requests, const std::vector<uint32_t>& rows,
                            uint32_t first, int64_t patience, const uint8_t* pool = nullptr) {
  const auto end = static_cast<uint32_t>(rows.size());
  __atomic_store_n(&requests.end->word, tagged(requests.launch_id, end), __ATOMIC_RELEASE);
  __atomic_store_n(&requests.first->word, tagged(requests.launch_id, first), __ATOMIC_RELEASE);
  for (uint32_t i = end; i-- > 0;) {
    std::this_thread::yield();
    __atomic_store_n(&requests.rows[i], tagged(requests.launch_id, rows[i]), __ATOMIC_RELEASE);
  }
  std::vector<uint8_t> copied(static_cast<size_t>(end) * kBytes);
  const Pieces pieces(end - first, requests.ring_rows);
  uint32_t claimed = first;
  for (int64_t piece = 0; piece < pieces.count; ++piece) {
    const int64_t row = piece * pieces.piece_rows;
    const int64_t count = std::min(pieces.piece_rows, pieces.rows - row);
    const int64_t top = end - row;  // follows the piece's requests, which lie in reverse order
    if (pool != nullptr) {
      claimed = read_until_met(requests, rows, pool, claimed, top, copied);
      if (claimed >= top) {
        break;
      }
    }
    if (!await(requests, piece, patience)) {
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(copied.data() + (top - 1 - i) * kBytes,
                  requests.staging + (pieces.ring_row(row) + i) * kBytes, kBytes);
    }
    __atomic_store_n(&requests.read[piece].launch_id, requests.launch_id, __ATOMIC_RELEASE);
  }
  return copied;
}

void no_kernel(const MissRequests&) {}

// Launches `count` requests, of which those before `first` are in place; with `meets`, the kernel
// reads further ones in place until it meets the CPU.
void launch(MissPacker<kBytes>& packer, uint8_t* pool, int64_t count, uint32_t first, bool meets,
            const std::string& what) {
  const std::vector<uint32_t> rows = filled_rows(pool, count);
  std::vector<uint8_t> copied;
  std::thread running;
  packer.launch(
      nullptr,
      [&](const MissRequests& requests) {
        running = std::thread([&, requests] {
          copied = kernel(requests, rows, first, kEndless, meets ? pool : nullptr);
        });
      },
      no_kernel);
  running.join();
  for (size_t i = first; i < rows.size(); ++i) {
    const uint8_t* row = pool + int64_t{rows[i]} * kBytes;
    expect(std::memcmp(copied.data() + i * kBytes, row, kBytes) == 0,
           what + ": row " + std::to_string(i) + " differs");
  }
}

void answer(uint8_t* pool, int64_t max_rows, const std::vector<int>& cpus) {
  MissPacker<kBytes> packer(pool, max_rows, cpus);
  const auto launch_counts = [&](const std::string& when) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, max_rows / 3, max_rows}) {
      const std::string what = std::to_string(count) + " of " + std::to_string(max_rows) + when;
      launch(packer, pool, count, 0, false, what);
      launch(packer, pool, count, static_cast<uint32_t>(count / 2), false,
             what + ", half in place");
      launch(packer, pool, count, 0, true, what + ", until both meet");
    }
  };
  launch_counts("");
  packer.flush({0, 1, kPoolRows - 1});
  std::this_thread::sleep_for(2 * kSpin);  // the threads sleep now
  launch_counts(" after a sleep");

  // Threads must not wait for good for a kernel that was not launched, has failed, or has ended.
  last_error = cudaErrorInvalidConfiguration;
  packer.launch(nullptr, no_kernel, no_kernel);
  last_error = cudaSuccess;
  launch_counts(" after a kernel that was not launched");
  packer.launch(nullptr, no_kernel, no_kernel);
  event_status = cudaErrorIllegalAddress;
  bool failed = false;
  try {
    packer.launch(nullptr, no_kernel, no_kernel);
  } catch (const std::runtime_error&) {
    failed = true;
  }
  expect(failed, "a failed kernel was not reported");
  event_status = cudaSuccess;
  launch_counts(" after a kernel that has failed");
  const std::vector<uint32_t> rows = filled_rows(pool, max_rows);
  packer.launch(
      nullptr, [&](const MissRequests& requests) { kernel(requests, rows, 0, 0); }, no_kernel);
  launch_counts(" after a kernel that has lost patience");
  packer.launch(nullptr, no_kernel, no_kernel);  // and so it ends
}

}  // namespace

int main() {
  const std::vector<int> cpus = cpus_for_threads();
  uint8_t* pool = sparse_pool(kPoolBytes);
  for (const int64_t max_rows : {1, 9, 65, 300}) {
    answer(pool, max_rows, cpus);
  }
  bool refused = false;
  try {
    MissPacker<kBytes>(pool, 64, {cpus[0]});
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  expect(refused, "a packer without a thread");
}
