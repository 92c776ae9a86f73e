// A launch that carries the descriptors in the kernel's own parameters.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernel.h"

// Parameters of a kernel may take 32,764 bytes. What is passed is copied whole, so there are three
// sizes, each for as many descriptors as fit.
constexpr uint32_t kFew = 64;
constexpr uint32_t kMany = 1024;
constexpr uint32_t kMost = 2045;

// As Batch in kernel.h, with the descriptors themselves: the first `count` are used.
template <uint32_t Capacity>
struct Parameters {
  const uint8_t* bounce;
  uint8_t* dst;
  uint32_t count;
  uint32_t team_log2;
  uint64_t reserved;
  Descriptor descriptors[Capacity];
};
static_assert(sizeof(Parameters<kMost>) <= 32764, "more than a launch can carry");

template <typename Way, uint32_t Capacity>
static __global__ void __launch_bounds__(kBlock)
    unpack_parameters(const __grid_constant__ Parameters<Capacity> batch) {
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const uint32_t fragment = static_cast<uint32_t>(thread >> batch.team_log2);
  if (fragment < batch.count) {
    const uint32_t team = 1U << batch.team_log2;
    const uint32_t lane = static_cast<uint32_t>(thread) & (team - 1);
    Way::copy(share_of(batch.bounce, batch.dst, batch.descriptors[fragment], lane, team));
  }
}

// Descriptors on their way into a launch; each full load is launched by itself. `receive` outlives
// it. One thread, one stream until the load is launched. Throws std::runtime_error where CUDA
// refuses.
template <typename Way>
class Loader {
 public:
  explicit Loader(const Receive& receive) : receive_(receive) {}

  void add(const Descriptor& fragment, cudaStream_t stream) {
    if (load_.count == kMost) {
      launch(stream);
    }
    load_.descriptors[load_.count++] = fragment;
    bytes_ += fragment.len;
  }

  // Launches what is loaded, if anything; the launch has copied it when this returns.
  void launch(cudaStream_t stream) {
    if (load_.count == 0) {
      return;
    }
    load_.bounce = receive_.bounce;
    load_.dst = receive_.dst;
    load_.team_log2 = team_log2(bytes_, load_.count);
    if (load_.count <= kFew) {
      launch_sized<kFew>(stream);
    } else if (load_.count <= kMany) {
      launch_sized<kMany>(stream);
    } else {
      launch_sized<kMost>(stream);
    }
    load_.count = 0;
    bytes_ = 0;
  }

 private:
  // A smaller load is the beginning of a larger one, so it needs no copy of its own.
  template <uint32_t Capacity>
  void launch_sized(cudaStream_t stream) {
    void* arguments[] = {&load_};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(unpack_parameters<Way, Capacity>),
                           dim3(blocks_for(load_.count, load_.team_log2)), dim3(kBlock), arguments,
                           0, stream),
          "kernel launch");
  }

  const Receive& receive_;
  Parameters<kMost> load_{};
  uint64_t bytes_ = 0;
};
