// The device performs the step, deliberately slower than the CPU, and the data stays there.
#include "../common/launch.h"
#include "step.h"

constexpr int kBlocks = 128;  // all resident at once, because each block waits by itself
constexpr double kSlowdown = 1.05;
constexpr int kPairs = 5;  // of a step on the host and one on the device, back to back

__device__ int64_t nanoseconds() {
  int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void step_on_device(uint32_t* words, int64_t count, int64_t at_least_ns) {
  const int64_t start = nanoseconds();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    words[i] = words[i] * kFactor + kTerm;
  }
  while (nanoseconds() - start < at_least_ns) {
  }
}

class OnDevice : public Method {
 public:
  explicit OnDevice(const Pieces& moved) : Method(moved) { pace(nullptr); }

  void launch(cudaStream_t stream) override {
    step_on_device<<<kBlocks, kBlock, 0, stream>>>(
        reinterpret_cast<uint32_t*>(pieces.device),
        pieces.size / static_cast<int64_t>(sizeof(uint32_t)), at_least_ns_);
    check(cudaGetLastError(), "step_on_device");
  }

  // The CPU's speed varies over time, so its step is repeated for each pair.
  Samples samples(cudaStream_t stream) override {
    Samples taken;
    for (int i = 0; i < kPairs; ++i) {
      const auto [by_host, trip] = pace(stream);
      Event start;
      Event stop;
      const auto began = Clock::now();
      start.record(stream);
      launch(stream);
      stop.record(stream);
      const double step = stop.since(start);
      const double stay = seconds_since(began);
      taken["step_time"].push_back(step);
      taken["step_share"].push_back(step / by_host);
      taken["stay_share"].push_back(stay / trip);
    }
    return taken;
  }

 private:
  struct Trip {
    double step;
    double whole;
  };

  // Performs a step on the CPU and sets the kernel's duration by it; seconds of the step and in
  // total.
  Trip pace(cudaStream_t stream) {
    const auto began = Clock::now();
    const double step = step_on_host(pieces, stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    at_least_ns_ = static_cast<int64_t>(step * kSlowdown * 1e9);
    return {step, seconds_since(began)};
  }

  int64_t at_least_ns_ = 0;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<OnDevice>(pieces); }
