// Microseconds until pieces have arrived from host memory, by each way and by copy_pieces.h.
//   nvcc -O3 copy_pieces.cu -o copy_pieces && ./copy_pieces [--json]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "copy_pieces.h"

constexpr size_t kMemory = size_t{256} << 20;                            // bytes on either side
constexpr const char* kWays[] = {"loop", "pitched", "batch", "kernel"};  // as Way has them

void check(cudaError_t status, const char* what) {
  if (status) std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(status)), exit(1);
}

struct Memory {
  char *host, *gpu;
  std::vector<char> arrived;
  cudaStream_t stream;
  size_t used;  // bytes of the current pieces and the gaps between them
};

// Copies the pieces once and compares every byte; then the median of five times, in seconds.
template <class Copy>
double seconds(const Copy& copy, const Pieces& pieces, Memory& memory) {
  std::vector<double> times;
  for (int run = 0; run < 6; ++run) {
    check(cudaMemsetAsync(memory.gpu, 0, memory.used, memory.stream), "memset");
    check(cudaStreamSynchronize(memory.stream), "memset");
    const auto begin = std::chrono::steady_clock::now();
    check(copy(), "copy");
    check(cudaStreamSynchronize(memory.stream), "copy");
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (run > 0) continue;
    check(cudaMemcpy(memory.arrived.data(), memory.gpu, memory.used, cudaMemcpyDeviceToHost),
          "check");
    for (size_t i = 0; i < pieces.count; ++i) {
      const size_t at = static_cast<char*>(pieces.to[i]) - memory.gpu;
      if (std::memcmp(&memory.arrived[at], pieces.from[i], pieces.bytes[i]) != 0) {
        std::fprintf(stderr, "error: piece %zu: wrong bytes arrived\n", i), exit(1);
      }
    }
  }
  std::sort(times.begin() + 1, times.end());
  return times[3];
}

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::string(argv[1]) == "--json";
  if (argc > 1 && !json) {
    std::fprintf(stderr, "error: argument: expected --json, got '%s'\n", argv[1]);
    return 1;
  }
  Memory memory;
  memory.arrived.resize(kMemory);
  check(cudaStreamCreateWithFlags(&memory.stream, cudaStreamNonBlocking), "stream");
  check(cudaHostAlloc(&memory.host, kMemory, 0), "host memory");
  check(cudaMalloc(&memory.gpu, kMemory), "GPU memory");
  std::mt19937_64 random(7);
  for (size_t i = 0; i < kMemory; i += 8) *reinterpret_cast<uint64_t*>(memory.host + i) = random();
  std::printf(json ? "["
                   : "   bytes  pieces  layout     loop  pitched    batch   kernel   chosen, us\n");
  const char* separator = "";
  for (const bool is_even : {false, true}) {
    for (const size_t size : {512, 4096, 24576, 131072, 1 << 20}) {
      for (const size_t count : {2, 16, 256, 4096}) {
        memory.used = 2 * size * count;
        if (memory.used > kMemory) continue;
        // Each piece has a place of twice its size; scattered pieces have them in random order.
        std::vector<size_t> places(count), sizes(count, size);
        std::iota(places.begin(), places.end(), 0);
        std::vector<void*> to;
        std::vector<const void*> from;
        if (!is_even) std::shuffle(places.begin(), places.end(), random);
        for (const size_t place : places) from.push_back(memory.host + 2 * size * place);
        if (!is_even) std::shuffle(places.begin(), places.end(), random);
        for (const size_t place : places) to.push_back(memory.gpu + 2 * size * place);
        const Pieces pieces{to.data(), from.data(), sizes.data(), count};
        std::printf(
            json ? "%s{\"bytes\": %zu, \"pieces\": %zu, \"layout\": \"%s\"" : "%.0s%8zu %7zu  %-9s",
            separator, size, count, is_even ? "even" : "scattered");
        separator = ",\n ";
        const Way chosen = way_for(pieces, true);
        for (const Way way : {Way::kLoop, Way::kPitched, Way::kBatch, Way::kKernel}) {
          if (way == Way::kPitched && !is_even) {
            std::printf(json ? "" : "       - ");
            continue;
          }
          const auto copy = [&] { return copy_pieces(pieces, memory.stream, way); };
          const double taken = seconds(copy, pieces, memory);
          if (json) std::printf(", \"%s_s\": %.4g", kWays[int(way)], taken);
          if (!json) std::printf(" %7.1f ", taken * 1e6);
        }
        const auto copy = [&] { return copy_pieces(pieces, memory.stream); };
        std::printf(json ? ", \"chosen\": \"%s\", \"chosen_s\": %.4g}" : " %-7s %7.1f\n",
                    kWays[int(chosen)], seconds(copy, pieces, memory) * (json ? 1 : 1e6));
      }
    }
  }
  std::printf(json ? "]\n" : "");
}
