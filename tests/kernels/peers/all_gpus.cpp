// One variant's launches on 2 and 4 GPUs that are not there, with its kernels on the CPU: every
// byte of what arrives, and what is left when a call fails in the middle.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../cpus.h"
#include "../cudart.h"
#include "together.h"

namespace {

constexpr size_t kSets = 3;
constexpr uint8_t kPoison = 0xA5;
constexpr int64_t kGuardRows = 2;

void require(bool holds, const std::string& what) {
  if (!holds) {
    std::printf("wrong: %s\n", what.c_str());
    std::exit(1);
  }
}

int current() {
  int gpu = 0;
  cudaGetDevice(&gpu);
  return gpu;
}

// Distinct rows at random places of a pool, in sets; row i of a set goes to row i.
struct Memory {
  Memory(int row_bytes_, int64_t pool_rows_, int64_t rows_)
      : row_bytes(row_bytes_),
        pool_rows(pool_rows_),
        rows(rows_),
        pool(static_cast<size_t>(pool_rows * row_bytes)),
        dst(static_cast<size_t>((rows + kGuardRows) * row_bytes)) {
    std::mt19937 rng(1);
    for (size_t byte = 0; byte < pool.size(); byte += sizeof(uint32_t)) {
      const uint32_t word = rng();
      std::memcpy(pool.data() + byte, &word, sizeof word);
    }
    std::vector<int> order(static_cast<size_t>(pool_rows));
    std::iota(order.begin(), order.end(), 0);
    for (size_t set = 0; set < kSets; ++set) {
      std::shuffle(order.begin(), order.end(), rng);
      for (int64_t row = 0; row < rows; ++row) {
        pairs.push_back({order[static_cast<size_t>(row)], static_cast<int>(row)});
      }
    }
  }

  Part part(int gpu, int64_t begin, int64_t end) {
    Share share{};
    share.gpu = gpu;
    share.pool = pool.data();
    share.pool_rows = pool_rows;
    share.dst = dst.data();
    share.pairs = pairs.data() + begin;
    share.rows = end - begin;
    share.launch_rows = rows;
    share.destination = begin;
    share.row_bytes = row_bytes;
    return {share, std::vector<int64_t>(kSets, 0), rows};
  }

  std::vector<Part> parts(int gpus) {
    if (kPlan.moved_by == std::string("first")) {
      return {part(0, 0, rows)};
    }
    std::vector<Part> found;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      found.push_back(part(gpu, rows * gpu / gpus, rows * (gpu + 1) / gpus));
    }
    return found;
  }

  void poison() { std::fill(dst.begin(), dst.end(), kPoison); }

  void check(size_t set, const std::string& what) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int2 pair = pairs[set * static_cast<size_t>(rows) + static_cast<size_t>(row)];
      require(std::equal(dst.begin() + row * row_bytes, dst.begin() + (row + 1) * row_bytes,
                         pool.begin() + int64_t{pair.x} * row_bytes),
              what + ": row " + std::to_string(row) + " differs");
    }
    require(std::all_of(dst.begin() + rows * row_bytes, dst.end(),
                        [](uint8_t byte) { return byte == kPoison; }),
            what + ": written behind the rows");
  }

  int row_bytes;
  int64_t pool_rows;
  int64_t rows;
  std::vector<uint8_t> pool;
  std::vector<uint8_t> dst;
  std::vector<int2> pairs;
};

void every_byte_arrives(cudaStream_t caller, int gpus, Memory memory) {
  const std::string what = std::to_string(gpus) + " GPUs, " + std::to_string(memory.rows) +
                           " rows of " + std::to_string(memory.row_bytes) + " B";
  const Together together(memory.parts(gpus), {gpus, cpus_for_threads()});
  for (size_t launch = 0; launch < 2 * kSets; ++launch) {
    memory.poison();
    together.launch(caller, launch % kSets);
    require(current() == 0, what + ": another GPU stays current");
    if (launch % 2 == 1) {
      run_ahead(caller);
    }
    cudaStreamSynchronize(caller);
    memory.check(launch % kSets, what);
  }
}

// Each call in turn: the error comes out, and the next launch is right again.
void a_failure_comes_out(cudaStream_t caller, int gpus) {
  Memory memory(48, 800, 200);
  bool has_failed = true;
  for (int call = 0; has_failed; ++call) {
    require(call < 10000, "calls fail for ever");
    has_failed = false;
    try {
      fail_at(call);
      const Together together(memory.parts(gpus), {gpus, cpus_for_threads()});
      together.launch(caller, 1);
      run_ahead(caller);
      check(cudaStreamSynchronize(caller), "caller");
    } catch (const std::runtime_error&) {
      has_failed = true;
    }
    fail_at(-1);
    require(current() == 0, "another GPU stays current after a failure");
    run_ahead(caller);
    cudaStreamSynchronize(caller);
  }
  every_byte_arrives(caller, gpus, memory);
}

}  // namespace

int main() {
  cudaStream_t caller = nullptr;
  cudaStreamCreateWithFlags(&caller, 0);
  for (const int gpus : {2, 4}) {
    for (const int row_bytes : {16, 32, 48, 128, 256, 656, 1024, 4096}) {
      every_byte_arrives(caller, gpus, Memory(row_bytes, 4001, 303));
    }
    every_byte_arrives(caller, gpus, Memory(16, 9000, 9000));
    every_byte_arrives(caller, gpus, Memory(656, 9, 9));
    every_byte_arrives(caller, gpus, Memory(4096, 9000, 8600));  // each stream sends several times
    a_failure_comes_out(caller, gpus);
  }
  cudaStreamDestroy(caller);
  return 0;
}
