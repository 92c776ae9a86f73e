// Seconds to pin memory by cudaHostAlloc and by pin.h, and how long a copy of another thread waits.
//   nvcc -O3 -std=c++17 pin.cu -o pin && ./pin [--json] [--gib N]
// Pins 16 GiB by default, and at most half of the free host memory.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "pin.h"

void check(cudaError_t status, const char* what) {
  if (status) std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(status)), exit(1);
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  double pinned, longest_copy;  // seconds
};

// Calls pin() while another thread copies 4 KiB to `device` again and again.
template <class Pin>
Times beside_copies(const Pin& pin, void* device) {
  std::atomic<bool> is_copying{false}, is_over{false};
  double longest = 0;
  std::thread neighbour([&] {
    cudaStream_t stream;
    void* host;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cudaHostAlloc(&host, 4096, 0), "4 KiB of host memory");
    while (!is_over) {
      const double begin = now_s();
      check(cudaMemcpyAsync(device, host, 4096, cudaMemcpyHostToDevice, stream), "copy");
      check(cudaStreamSynchronize(stream), "copy");
      longest = is_copying.exchange(true) ? std::max(longest, now_s() - begin) : 0;
    }
    check(cudaFreeHost(host), "4 KiB of host memory");
  });
  while (!is_copying) std::this_thread::yield();
  const double begin = now_s();
  std::exception_ptr error;
  try {
    pin();
  } catch (...) {
    error = std::current_exception();
  }
  const double pinned = now_s() - begin;
  is_over = true;
  neighbour.join();
  if (error) std::rethrow_exception(error);
  return {pinned, longest};
}

// Copies random bytes around every border of two chunks to the device and back.
bool copies_are_right(const PinnedMemory& memory, char* device, size_t window) {
  std::mt19937_64 random(7);
  std::vector<char> expected(window);
  const size_t chunk = memory.chunk_bytes();
  for (size_t border = chunk; border + window < memory.size(); border += chunk) {
    char* const begin = memory.data() + border - window / 3;
    for (char& byte : expected) byte = static_cast<char>(random());
    std::memcpy(begin, expected.data(), window);
    check(memory.copy(device, begin, window, 0), "copy to the device");
    check(cudaStreamSynchronize(0), "copy to the device");
    std::memset(begin, 0, window);
    check(memory.copy(begin, device, window, 0), "copy to the host");
    check(cudaStreamSynchronize(0), "copy to the host");
    if (std::memcmp(begin, expected.data(), window) != 0) return false;
  }
  return true;
}

int main(int argc, char** argv) try {
  bool json = false;
  double gib = 16;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      json = true;
    } else if (word != "--gib" || ++i == argc || !((gib = std::atof(argv[i])) >= 0.5)) {
      throw std::runtime_error("argument: expected --json or --gib N from 0.5, got '" + word + "'");
    }
  }
  const size_t bytes = std::min(size_t(gib * 1024), free_host_bytes() >> 21) << 20;
  constexpr size_t kWindow = (1 << 16) + 5;
  char* device;
  void* allocated;
  check(cudaMalloc(&device, kWindow), "GPU memory");
  const auto allocate = [&] { check(cudaHostAlloc(&allocated, bytes, 0), "cudaHostAlloc"); };
  const Times slow = beside_copies(allocate, device);
  check(cudaFreeHost(allocated), "cudaFreeHost");
  std::unique_ptr<PinnedMemory> memory;
  const Times fast = beside_copies([&] { memory.reset(new PinnedMemory(bytes)); }, device);
  if (!copies_are_right(*memory, device, kWindow)) throw std::runtime_error("copied wrong bytes");
  const double begin = now_s();
  memory.reset();
  const char* const form =
      json ? "{\"bytes\": %zu, \"host_alloc_s\": %.6g, \"host_alloc_wait_s\": %.6g, "
             "\"pin_s\": %.6g, \"pin_wait_s\": %.6g, \"unpin_s\": %.6g}\n"
           : "%zu bytes\ncudaHostAlloc %8.3f s, longest copy of another thread %8.4f s\n"
             "pin.h         %8.3f s, longest copy of another thread %8.4f s\nunpin %16.3f s\n";
  std::printf(form, bytes, slow.pinned, slow.longest_copy, fast.pinned, fast.longest_copy,
              now_s() - begin);
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
