// Launches of several GPUs on a runtime that has none: what is there when the caller's stream is
// done, and what a neighbour has left.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../cudart.h"
#include "together.h"

namespace {

constexpr int kRowBytes = 32;
constexpr int64_t kRows = 21;  // of a set
constexpr size_t kSets = 3;

void require(bool holds, const char* what) {
  if (!holds) {
    std::printf("wrong: %s\n", what);
    std::exit(1);
  }
}

struct Memory {
  std::vector<uint8_t> pool = std::vector<uint8_t>(kRowBytes * kRows * kSets);
  std::vector<uint8_t> dst = std::vector<uint8_t>(kRowBytes * kRows, 0xA5);
  std::vector<uint8_t> beside = dst;

  Memory() {
    for (size_t i = 0; i < pool.size(); ++i) {
      pool[i] = static_cast<uint8_t>(i * 7 + i / 251);
    }
  }

  Part part(int gpu, int64_t begin, int64_t end, bool is_neighbour) {
    Share share{};
    share.gpu = gpu;
    share.pool = pool.data();
    share.dst = is_neighbour ? beside.data() : dst.data();
    share.rows = end - begin;
    share.launch_rows = kRows;
    share.destination = begin;
    share.row_bytes = kRowBytes;
    share.is_neighbour = is_neighbour;
    std::vector<int64_t> sources;
    for (size_t set = 0; set < kSets; ++set) {
      sources.push_back(static_cast<int64_t>(set) * kRows + begin);
    }
    return {share, sources, kRows};
  }

  bool arrived(const std::vector<uint8_t>& where, size_t set) const {
    return std::equal(where.begin(), where.end(),
                      pool.begin() + static_cast<int64_t>(set) * kRowBytes * kRows);
  }
};

int current() {
  int gpu = 0;
  cudaGetDevice(&gpu);
  return gpu;
}

void gpus_work_together(cudaStream_t caller, int gpus) {
  Memory memory;
  std::vector<Part> parts;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    parts.push_back(memory.part(gpu, kRows * gpu / gpus, kRows * (gpu + 1) / gpus, false));
  }
  const Together together(parts, {gpus, {}});
  for (size_t set = 0; set < kSets; ++set) {
    // Work of the caller's that comes first: nothing may be written before.
    std::vector<uint8_t> poison(memory.dst.size(), 0xA5);
    cudaMemcpyAsync(memory.dst.data(), poison.data(), poison.size(), cudaMemcpyDefault, caller);
    together.launch(caller, set);
    require(current() == 0, "another GPU stays current");
    if (set % 2 == 1) {
      run_ahead(caller);
    }
    cudaStreamSynchronize(caller);
    require(memory.arrived(memory.dst, set), "the stream is done before all shares are");
  }
}

void launches_take_turns_but_the_first_set_is_for_the_check(cudaStream_t caller) {
  Memory memory;
  Together together({memory.part(0, 0, kRows, false)}, {1, {}});
  for (int round = 0; round < 2; ++round) {
    for (const size_t set : {0, 1, 2, 1, 2}) {
      together.launch(caller);
      cudaStreamSynchronize(caller);
      require(memory.arrived(memory.dst, set), "another set is launched");
    }
    together.restart();
  }
}

void a_peer_works_alone(cudaStream_t caller) {
  Memory memory;
  const Together together({memory.part(1, 0, kRows, false)}, {2, {}});
  together.launch(caller, 2);
  cudaStreamSynchronize(caller);
  require(memory.arrived(memory.dst, 2), "the stream is done before the peer is");
}

void a_neighbour_is_not_waited_for(cudaStream_t caller) {
  Memory memory;
  const Together together({memory.part(0, 0, kRows, false), memory.part(1, 0, kRows, true)},
                          {2, {}});
  together.rejoin(caller);  // before the first launch, there is nothing to wait for
  together.launch(caller, 1);
  cudaStreamSynchronize(caller);
  require(memory.arrived(memory.dst, 1), "the launch is not done");
  require(!memory.arrived(memory.beside, 1), "the neighbour is waited for");
  together.rejoin(caller);
  cudaStreamSynchronize(caller);
  require(memory.arrived(memory.beside, 1), "the neighbour is not waited for when asked");
}

void a_set_that_is_not_there_is_refused(cudaStream_t caller) {
  Memory memory;
  const Together together({memory.part(0, 0, kRows, false)}, {1, {}});
  try {
    together.launch(caller, kSets);
  } catch (const std::out_of_range&) {
    return;
  }
  require(false, "a set that is not there is launched");
}

}  // namespace

int main() {
  cudaStream_t caller = nullptr;
  cudaStreamCreateWithFlags(&caller, 0);
  for (const int gpus : {1, 2, 4}) {
    gpus_work_together(caller, gpus);
  }
  launches_take_turns_but_the_first_set_is_for_the_check(caller);
  a_peer_works_alone(caller);
  a_neighbour_is_not_waited_for(caller);
  a_set_that_is_not_there_is_refused(caller);
  cudaStreamDestroy(caller);
  return 0;
}
