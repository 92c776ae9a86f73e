// One copy, timed as nvbandwidth does it: a kernel blocks the stream while 4 warm-up copies and 16
// copies between two events are enqueued; the result is the median of 3 such times.
#include <algorithm>
#include <array>

#include "../common/moves/events.h"
#include "../common/moves/transfer.h"

constexpr int kWarmUps = 4;
constexpr int kCopies = 16;
constexpr int kTimes = 3;
constexpr long long kTimeoutClocks =
    10'000'000'000;  // seconds, so that an unset latch cannot hang the GPU

__global__ void hold(const volatile int* latch) {
  const long long start = clock64();
  while (*latch == 0 && clock64() - start < kTimeoutClocks) {
  }
}

class Nvbandwidth : public Method {
 public:
  explicit Nvbandwidth(const Pieces& moved) : Method(moved) {
    if (pieces.count != 1) {
      throw std::invalid_argument("count: expected 1, got " + std::to_string(pieces.count));
    }
    check(cudaHostAlloc(&latch_, sizeof(int), cudaHostAllocMapped), "cudaHostAlloc");
  }
  ~Nvbandwidth() override { cudaFreeHost(latch_); }

  void launch(cudaStream_t stream) override {
    check(cudaMemcpyAsync(pieces.to(0), pieces.from(0), pieces.size, pieces.kind(), stream),
          "cudaMemcpyAsync");
  }

  Samples samples(cudaStream_t stream) override {
    std::array<double, kTimes> seconds{};
    for (double& each : seconds) {
      each = held_copies(stream) / kCopies;
    }
    std::sort(seconds.begin(), seconds.end());
    return {{"gpu_time", {seconds[kTimes / 2]}}};
  }

 private:
  double held_copies(cudaStream_t stream) {
    volatile int* latch = static_cast<int*>(latch_);
    *latch = 0;
    hold<<<1, 1, 0, stream>>>(latch);
    check(cudaGetLastError(), "hold");
    for (int i = 0; i < kWarmUps; ++i) {
      launch(stream);
    }
    start_.record(stream);
    for (int i = 0; i < kCopies; ++i) {
      launch(stream);
    }
    stop_.record(stream);
    *latch = 1;
    return stop_.since(start_);
  }

  void* latch_ = nullptr;
  Event start_;
  Event stop_;
};

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<Nvbandwidth>(pieces);
}
