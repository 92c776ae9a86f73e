// A second clock for launches of built modules: plain C++ and CUDA, without NVBench and without any
// code of the engine. clock.py compiles it, and calls its functions by their C names.
//
// An error is named and ends the process. Streams are never the default stream, and one thread
// calls at a time.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

using Steady = std::chrono::steady_clock;
using Launch = void (*)(void* object, cudaStream_t stream);

constexpr long long kHoldLimitCycles = 4'000'000'000;
// The copy engine polls for the end of the work before it. A random delay of the release spreads
// its polls over the samples.
constexpr double kMaxReleaseDelayS = 50e-6;

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "second clock: %s: %s\n", what, why);
  std::_Exit(1);
}

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    fail(what, cudaGetErrorString(status));
  }
}

double seconds_since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

// Words in mapped host memory.
struct Mailbox {
  uint32_t released;    // the last sample whose stream may continue, by the host
  uint32_t is_expired;  // 1 once the kernel has waited in vain, by the GPU
};

// Keeps its stream busy until the host releases `sample`.
__global__ void hold(volatile Mailbox* mailbox, uint32_t sample) {
  const long long start = clock64();
  while (mailbox->released != sample) {
    if (clock64() - start > kHoldLimitCycles) {
      mailbox->is_expired = 1;
      return;
    }
  }
}

Mailbox* make_mailbox() {
  void* made = nullptr;
  require(cudaHostAlloc(&made, sizeof(Mailbox), cudaHostAllocMapped), "mapped memory");
  return new (made) Mailbox{};
}

cudaEvent_t make_event() {
  cudaEvent_t made = nullptr;
  require(cudaEventCreate(&made), "cudaEventCreate");
  return made;
}

}  // namespace

extern "C" {

// Flushes the L2 of the only visible GPU and waits until the stream is idle.
void flush(cudaStream_t stream) {
  static int bytes = 0;
  static void* l2 = nullptr;
  if (l2 == nullptr) {
    require(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0), "size of the L2");
    require(cudaMalloc(&l2, static_cast<size_t>(bytes)), "memory of the size of the L2");
  }
  require(cudaMemsetAsync(l2, 0, static_cast<size_t>(bytes), stream), "flush of the L2");
  require(cudaStreamSynchronize(stream), "idle stream");
}

// Seconds between two events around launch(object, stream). A kernel holds the stream, with a
// flushed L2, until all is enqueued.
double device_time(Launch launch, void* object, cudaStream_t stream) {
  static Mailbox* const mailbox = make_mailbox();
  static cudaEvent_t const start = make_event(), end = make_event();
  static std::minstd_rand random{1};
  static uint32_t sample = 0;
  flush(stream);
  hold<<<1, 1, 0, stream>>>(mailbox, ++sample);
  require(cudaGetLastError(), "hold of the stream");
  require(cudaEventRecord(start, stream), "start");
  launch(object, stream);
  require(cudaEventRecord(end, stream), "end");
  const Steady::time_point enqueued = Steady::now();
  const double delay = std::uniform_real_distribution<>(0, kMaxReleaseDelayS)(random);
  while (seconds_since(enqueued) < delay) {
  }
  __atomic_store_n(&mailbox->released, sample, __ATOMIC_SEQ_CST);
  require(cudaStreamSynchronize(stream), "wait for the launch");
  if (mailbox->is_expired != 0) {
    fail("device time", "expected a launch that does not wait for its stream");
  }
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
  return milliseconds * 1e-3;
}

// Seconds of launch(object, stream) and the wait for the stream, which is idle before.
double host_time(Launch launch, void* object, cudaStream_t stream) {
  require(cudaStreamSynchronize(stream), "idle stream");
  const Steady::time_point start = Steady::now();
  launch(object, stream);
  require(cudaStreamSynchronize(stream), "wait for the launch");
  return seconds_since(start);
}
}
