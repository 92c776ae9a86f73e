// Launches of one variant on GPUs that are not there, with its kernels on the CPU and all work done
// late: every byte of what arrives, and what is left when a call fails in the middle. Ends with 1
// and says what is wrong.
#include <cstring>
#include <numeric>
#include <random>

#include "../cudart.h"
#include "../expect.h"
#include "together.h"

namespace {

constexpr size_t kSets = 3;
constexpr uint8_t kPoison = 0xA5;
constexpr int64_t kGuardRows = 2;
const bool is_copy = kPlan.how == std::string("copy");
cudaStream_t caller = nullptr;

// Sets of distinct rows of a pool, consecutive ones for copies; row i of a set goes to row i.
struct Memory {
  Memory(int row_bytes_, int64_t pool_rows, int64_t rows_)
      : row_bytes(row_bytes_),
        rows(rows_),
        pool(static_cast<size_t>(pool_rows * row_bytes)),
        dst(static_cast<size_t>((rows + kGuardRows) * row_bytes)),
        beside(dst.size()),
        poison(dst.size(), kPoison) {
    std::mt19937 rng(1);
    std::generate(pool.begin(), pool.end(), [&] { return static_cast<uint8_t>(rng()); });
    std::vector<int> order(static_cast<size_t>(pool_rows));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t set = 0; set < static_cast<int64_t>(kSets); ++set) {
      if (!is_copy) {
        std::shuffle(order.begin(), order.end(), rng);
      }
      const int64_t first = is_copy ? set * (pool_rows - rows) / 2 : 0;
      for (int64_t row = 0; row < rows; ++row) {
        pairs.push_back({order[static_cast<size_t>(first + row)], static_cast<int>(row)});
      }
    }
  }

  Part part(int gpu, int64_t begin, int64_t end, bool is_neighbour = false) {
    Share share{};
    share.gpu = gpu;
    share.pool = pool.data();
    share.pool_rows = static_cast<int64_t>(pool.size()) / row_bytes;
    share.dst = is_neighbour ? beside.data() : dst.data();
    share.pairs = pairs.data() + begin;
    share.rows = end - begin;
    share.launch_rows = rows;
    share.destination = begin;
    share.row_bytes = row_bytes;
    share.is_neighbour = is_neighbour;
    std::vector<int64_t> sources;
    for (size_t set = 0; set < kSets; ++set) {
      sources.push_back(source(set, begin));
    }
    return {share, sources, rows};
  }

  // A share for each GPU, or for the first one alone if the variant has it so.
  std::vector<Part> parts(int gpus) {
    const int movers = kPlan.moved_by == std::string("first") && !is_copy ? 1 : gpus;
    std::vector<Part> found;
    for (int gpu = 0; gpu < movers; ++gpu) {
      found.push_back(part(gpu, rows * gpu / movers, rows * (gpu + 1) / movers));
    }
    return found;
  }

  int64_t source(size_t set, int64_t row) const {
    return pairs[set * static_cast<size_t>(rows) + static_cast<size_t>(row)].x;
  }

  // The first row that has not arrived, or that was written behind the others; -1 if none.
  int64_t wrong_row(const std::vector<uint8_t>& where, size_t set) const {
    for (int64_t row = 0; row < rows; ++row) {
      if (!std::equal(where.begin() + row * row_bytes, where.begin() + (row + 1) * row_bytes,
                      pool.begin() + source(set, row) * row_bytes)) {
        return row;
      }
    }
    const bool is_clean = std::equal(where.begin() + rows * row_bytes, where.end(), poison.begin());
    return is_clean ? -1 : rows;
  }

  // Launches a set behind work of the caller's: no row may be written before.
  template <class Launch>
  void expect_rows(size_t set, const std::string& what, const Launch& launch) {
    for (std::vector<uint8_t>* where : {&dst, &beside}) {
      cudaMemcpyAsync(where->data(), poison.data(), where->size(), cudaMemcpyDefault, caller);
    }
    launch();
    int gpu = 0;
    cudaGetDevice(&gpu);
    expect(gpu == 0, what + ": another GPU stays current");
    if (set % 2 == 1) {
      run_ahead(caller);
    }
    cudaStreamSynchronize(caller);
    const int64_t row = wrong_row(dst, set);
    expect(row < 0, what + ": row " + std::to_string(row) + " differs");
  }

  int row_bytes;
  int64_t rows;
  std::vector<uint8_t> pool;
  std::vector<uint8_t> dst;
  std::vector<uint8_t> beside;
  std::vector<uint8_t> poison;
  std::vector<int2> pairs;
};

void every_byte_arrives(int gpus, Memory memory) {
  const Together together(memory.parts(gpus), {gpus, cpus_for_threads()});
  for (size_t launch = 0; launch < 2 * kSets; ++launch) {
    memory.expect_rows(launch % kSets,
                       std::to_string(gpus) + " GPUs, " + std::to_string(memory.rows) +
                           " rows of " + std::to_string(memory.row_bytes) + " B",
                       [&] { together.launch(caller, launch % kSets); });
  }
}

// Each call in turn: the error comes out, and the next launch is right again.
void a_failure_comes_out(int gpus) {
  Memory memory(48, 800, 200);
  bool has_failed = true;
  for (int call = 0; has_failed; ++call) {
    expect(call < 10000, "calls fail for ever");
    fail_at(call);
    has_failed = throws<std::runtime_error>([&] {
      const Together together(memory.parts(gpus), {gpus, cpus_for_threads()});
      together.launch(caller, 1);
      run_ahead(caller);
      check(cudaStreamSynchronize(caller), "caller");
    });
    fail_at(-1);
    run_ahead(caller);
    cudaStreamSynchronize(caller);
  }
  every_byte_arrives(gpus, memory);
}

void launches_take_turns_but_the_first_set_is_for_the_check() {
  Memory memory(32, 100, 21);
  Together together({memory.part(0, 0, memory.rows)}, {1, cpus_for_threads()});
  for (int round = 0; round < 2; ++round) {
    for (const size_t set : {0, 1, 2, 1, 2}) {
      memory.expect_rows(set, "another set is launched", [&] { together.launch(caller); });
    }
    together.restart();
  }
}

void a_peer_works_alone_and_a_neighbour_is_not_waited_for() {
  Memory memory(32, 100, 21);
  const Together alone({memory.part(1, 0, memory.rows)}, {2, cpus_for_threads()});
  memory.expect_rows(2, "the stream is done before the peer", [&] { alone.launch(caller, 2); });
  const Together together({memory.part(0, 0, memory.rows), memory.part(1, 0, memory.rows, true)},
                          {2, cpus_for_threads()});
  together.rejoin(caller);  // before the first launch, there is nothing to wait for
  memory.expect_rows(0, "beside a neighbour", [&] { together.launch(caller, 0); });
  expect(memory.wrong_row(memory.beside, 0) == 0, "the neighbour is waited for");
  together.rejoin(caller);
  cudaStreamSynchronize(caller);
  expect(memory.wrong_row(memory.beside, 0) < 0, "the neighbour is not waited for when asked");
}

}  // namespace

int main() {
  cudaStreamCreateWithFlags(&caller, 0);
  if (is_copy) {
    every_byte_arrives(1, Memory(32, 100, 21));
    launches_take_turns_but_the_first_set_is_for_the_check();
    a_peer_works_alone_and_a_neighbour_is_not_waited_for();
  }
  for (const int gpus : {2, 4}) {
    for (const int row_bytes : {16, 32, 48, 128, 256, 656, 1024, 4096}) {
      every_byte_arrives(gpus, Memory(row_bytes, 4001, 303));
    }
    every_byte_arrives(gpus, Memory(16, 9000, 9000));
    every_byte_arrives(gpus, Memory(656, 9, 9));
    every_byte_arrives(gpus, Memory(4096, 9000, 8600));  // each stream sends several times
    a_failure_comes_out(gpus);
  }
  cudaStreamDestroy(caller);
}
