// A second clock for launches of built modules: plain C++ and CUDA, without NVBench and without any
// code of the engine. clock.py compiles it, and calls its functions by their C names.
//
// A function that fails returns a negative time; message() says why. Streams are never the default
// stream, and one thread calls at a time.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>

namespace {

using Steady = std::chrono::steady_clock;
using Launch = void (*)(void* object, cudaStream_t stream);

constexpr double kFailed = -1;
constexpr long long kHoldLimitCycles = 4'000'000'000;
// The copy engine polls for the end of the work before it. A random delay of the release spreads
// its polls over the samples.
constexpr double kMaxReleaseDelayS = 50e-6;

std::string last_message;

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
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

class SecondClock {
 public:
  SecondClock() {
    // Only this GPU is visible.
    require(cudaDeviceGetAttribute(&l2_bytes_, cudaDevAttrL2CacheSize, 0), "size of the L2");
    require(cudaMalloc(&l2_, static_cast<size_t>(l2_bytes_)), "memory of the size of the L2");
    void* mailbox = nullptr;
    require(cudaHostAlloc(&mailbox, sizeof(Mailbox), cudaHostAllocMapped), "mapped memory");
    mailbox_ = new (mailbox) Mailbox{};
    require(cudaEventCreate(&start_), "cudaEventCreate");
    require(cudaEventCreate(&end_), "cudaEventCreate");
  }

  // Flushes the L2 and waits until the stream is idle; 0.
  double flush(cudaStream_t stream) {
    require(cudaMemsetAsync(l2_, 0, static_cast<size_t>(l2_bytes_), stream), "flush of the L2");
    require(cudaStreamSynchronize(stream), "idle stream");
    return 0;
  }

  // Seconds between two events around launch(object, stream). A kernel holds the stream, with a
  // flushed L2, until all is enqueued.
  double device_time(Launch launch, void* object, cudaStream_t stream) {
    flush(stream);
    hold<<<1, 1, 0, stream>>>(mailbox_, ++sample_);
    require(cudaGetLastError(), "hold of the stream");
    require(cudaEventRecord(start_, stream), "start");
    launch(object, stream);
    require(cudaEventRecord(end_, stream), "end");
    const Steady::time_point enqueued = Steady::now();
    const double delay = std::uniform_real_distribution<>(0, kMaxReleaseDelayS)(random_);
    while (seconds_since(enqueued) < delay) {
    }
    __atomic_store_n(&mailbox_->released, sample_, __ATOMIC_SEQ_CST);
    require(cudaStreamSynchronize(stream), "wait for the launch");
    if (mailbox_->is_expired != 0) {
      mailbox_->is_expired = 0;
      throw std::runtime_error("device time: expected a launch that does not wait for its stream");
    }
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, start_, end_), "cudaEventElapsedTime");
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

 private:
  void* l2_ = nullptr;
  int l2_bytes_ = 0;
  Mailbox* mailbox_ = nullptr;
  uint32_t sample_ = 0;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::minstd_rand random_{1};
};

// What `function` returns of the one clock, which is kept until the process ends.
template <typename Function>
double caught(const Function& function) {
  try {
    static SecondClock clock;
    return function(clock);
  } catch (const std::exception& error) {
    last_message = error.what();
    return kFailed;
  }
}

}  // namespace

extern "C" {

const char* message() { return last_message.c_str(); }

double flush(cudaStream_t stream) {
  return caught([&](SecondClock& clock) { return clock.flush(stream); });
}

double device_time(Launch launch, void* object, cudaStream_t stream) {
  return caught([&](SecondClock& clock) { return clock.device_time(launch, object, stream); });
}

double host_time(Launch launch, void* object, cudaStream_t stream) {
  return caught([&](SecondClock& clock) { return clock.host_time(launch, object, stream); });
}
}
