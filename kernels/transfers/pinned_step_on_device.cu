// The device takes the step, on purpose more slowly than the CPU would, and the data stays there.
#include <algorithm>
#include <array>

#include "step.h"

const Memory kMemory = Memory::kPinned;

constexpr int kBlock = 256;
constexpr int kBlocks = 128;  // no more than run at once: each keeps its own time
constexpr double kSlower = 1.25;

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
  // The CPU's time is taken here, from the memory the other variant uses.
  explicit OnDevice(const Pieces& moved) : Method(moved) {
    std::array<double, 3> seconds{};
    for (double& each : seconds) {
      each = step_on_host(pieces.on_host(0), pieces.size);
    }
    at_least_ns_ =
        static_cast<int64_t>(*std::max_element(seconds.begin(), seconds.end()) * kSlower * 1e9);
  }

  void launch(cudaStream_t stream) override {
    step_on_device<<<kBlocks, kBlock, 0, stream>>>(
        reinterpret_cast<uint32_t*>(pieces.on_device(0)),
        pieces.size / static_cast<int64_t>(sizeof(uint32_t)), at_least_ns_);
    check(cudaGetLastError(), "step_on_device");
  }

  std::map<std::string, std::vector<double>> samples(cudaStream_t stream) override {
    Event start;
    Event stop;
    start.record(stream);
    launch(stream);
    stop.record(stream);
    return {{"step_time", {stop.since(start)}}};
  }

 private:
  int64_t at_least_ns_ = 0;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<OnDevice>(pieces); }
