// The path of variants that pass descriptors as kernel parameters. They define its `unpack`.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernel.h"

// Capacities of a launch, in descriptors. CUDA copies all parameters, used or not, so small
// launches have smaller ones. The largest fills the 32,764 bytes that a kernel's parameters may
// have.
constexpr uint32_t kSmallCapacity = 64;
constexpr uint32_t kMediumCapacity = 1024;
constexpr uint32_t kMaxCapacity = 2045;

// As Batch in kernel.h, but with the descriptors by value: the first `count` are used.
template <uint32_t Capacity>
struct Parameters {
  const uint8_t* bounce;
  uint8_t* dst;
  uint32_t count;
  uint32_t team_log2;
  uint64_t reserved;
  Descriptor descriptors[Capacity];
};
static_assert(sizeof(Parameters<kMaxCapacity>) <= 32764, "more bytes than parameters may have");

template <typename FragmentCopy, uint32_t Capacity>
static __global__ void __launch_bounds__(kBlock)
    unpack_parameters(const __grid_constant__ Parameters<Capacity> batch) {
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const uint32_t fragment = static_cast<uint32_t>(thread >> batch.team_log2);
  if (fragment < batch.count) {
    const uint32_t team = 1U << batch.team_log2;
    const uint32_t lane = static_cast<uint32_t>(thread) & (team - 1);
    FragmentCopy::copy(share_of(batch.bounce, batch.dst, batch.descriptors[fragment], lane, team));
  }
}

// Collects descriptors and launches a kernel whenever the parameters are full. `receive` outlives
// it. Not thread-safe; one stream per launch. Throws std::runtime_error with CUDA's message.
template <typename FragmentCopy>
class ParameterLauncher {
 public:
  explicit ParameterLauncher(const Receive& receive) : receive_(receive) {}

  void add(const Descriptor& fragment, cudaStream_t stream) {
    if (parameters_.count == kMaxCapacity) {
      launch(stream);
    }
    parameters_.descriptors[parameters_.count++] = fragment;
    bytes_ += fragment.len;
  }

  // Launches the collected descriptors, if any. CUDA has copied them when this returns.
  void launch(cudaStream_t stream) {
    if (parameters_.count == 0) {
      return;
    }
    parameters_.bounce = receive_.bounce;
    parameters_.dst = receive_.dst;
    parameters_.team_log2 = team_log2(bytes_, parameters_.count);
    if (parameters_.count <= kSmallCapacity) {
      launch_sized<kSmallCapacity>(stream);
    } else if (parameters_.count <= kMediumCapacity) {
      launch_sized<kMediumCapacity>(stream);
    } else {
      launch_sized<kMaxCapacity>(stream);
    }
    parameters_.count = 0;
    bytes_ = 0;
  }

 private:
  // Parameters of a smaller capacity are a prefix of the largest ones, so nothing is copied here.
  template <uint32_t Capacity>
  void launch_sized(cudaStream_t stream) {
    void* arguments[] = {&parameters_};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(unpack_parameters<FragmentCopy, Capacity>),
                           dim3(blocks_for(parameters_.count, parameters_.team_log2)), dim3(kBlock),
                           arguments, 0, stream),
          "kernel launch");
  }

  const Receive& receive_;
  Parameters<kMaxCapacity> parameters_{};
  uint64_t bytes_ = 0;
};

namespace {

// May wait where it launches more often than a stream queues.
class ParametersPath : public Path {
 public:
  explicit ParametersPath(const Receive& receive) : receive_(receive), launcher_(receive) {}

  inline void unpack(cudaStream_t stream, PartTimer& timer) override;
  bool waits() const override { return receive_.descriptors > kMaxCapacity * kMaxQueuedCalls; }

 private:
  // Launches what is left after the last descriptor was added.
  void launch(cudaStream_t stream, PartTimer& timer) {
    timer.lap(kBatch);
    launcher_.launch(stream);
    timer.lap(kLaunch);
  }

  const Receive& receive_;
  ParameterLauncher<WidestAccess> launcher_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<ParametersPath>(receive);
}
