// Kernels on the CPU: their blocks run one after the other. The threads of a block are contexts
// that take turns: each runs until it waits for its warp or block.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cuda/atomic>  // as the host has it, before __CUDACC__
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels_on_cpu.h"

namespace block_on_cpu {

constexpr int kLanes = 32;
constexpr size_t kStackBytes = 64 << 10;

// Threads that wait for each other, and the values that the lanes of a warp exchange.
struct Group {
  int threads = 0;
  int waiting = 0;
  unsigned rounds = 0;
  std::array<uint64_t, kLanes> values{};
};

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  bool is_done = false;
};

inline ucontext_t scheduler;
inline std::vector<Thread> threads;
inline std::vector<Group> warps;
inline Group block;
inline std::function<void()> body;

inline void wait_for(Group& group) {
  const unsigned round = group.rounds;
  if (++group.waiting == group.threads) {
    group.waiting = 0;
    ++group.rounds;
  }
  while (group.rounds == round) {
    swapcontext(&threads[threadIdx.x].context, &scheduler);
  }
}

// The values of all lanes of the calling thread's warp.
inline std::array<uint64_t, kLanes> exchanged(uint64_t value) {
  Group& warp = warps[threadIdx.x / kLanes];
  warp.values[threadIdx.x % kLanes] = value;
  wait_for(warp);
  const std::array<uint64_t, kLanes> values = warp.values;
  wait_for(warp);
  return values;
}

inline void start() {
  const unsigned thread = threadIdx.x;
  body();
  threads[thread].is_done = true;
}

// Runs `thread` in all threads of a block.
inline void run(unsigned count, const std::function<void()>& thread) {
  body = thread;
  block = {static_cast<int>(count)};
  warps.assign(count / kLanes, {kLanes});
  threads.resize(count);
  for (Thread& each : threads) {
    each.is_done = false;
    getcontext(&each.context);
    each.context.uc_stack.ss_sp = each.stack.get();
    each.context.uc_stack.ss_size = kStackBytes;
    each.context.uc_link = &scheduler;
    makecontext(&each.context, start, 0);
  }
  const auto is_done = [](const Thread& each) { return each.is_done; };
  while (!std::all_of(threads.begin(), threads.end(), is_done)) {
    for (threadIdx.x = 0; threadIdx.x < count; ++threadIdx.x) {
      if (const unsigned next = threadIdx.x; !threads[next].is_done) {
        swapcontext(&scheduler, &threads[next].context);
        threadIdx.x = next;
      }
    }
  }
}

}  // namespace block_on_cpu

inline void __syncthreads() { block_on_cpu::wait_for(block_on_cpu::block); }

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return static_cast<T>(block_on_cpu::exchanged(value)[lane]);
}

template <class T>
T __shfl_up_sync(unsigned all, T value, int delta) {
  const int lane = threadIdx.x % block_on_cpu::kLanes;
  return __shfl_sync(all, value, lane >= delta ? lane - delta : lane);
}

inline unsigned __ballot_sync(unsigned, bool vote) {
  unsigned votes = 0;
  for (const uint64_t each : block_on_cpu::exchanged(vote)) {
    votes = votes >> 1 | static_cast<unsigned>(each) << 31;
  }
  return votes;
}

inline int __reduce_add_sync(unsigned, int value) {
  int sum = 0;
  for (const uint64_t each : block_on_cpu::exchanged(value)) {
    sum += static_cast<int>(each);
  }
  return sum;
}

inline int __popc(unsigned word) { return __builtin_popcount(word); }

inline int64_t clock64() { return 0; }

template <class T>
T __ldcg(const T* from) {
  return *from;
}

template <class T, class Value>
T atomicOr(T* to, Value bits) {
  return std::exchange(*to, *to | static_cast<T>(bits));
}

template <class T, class Value>
T atomicAnd(T* to, Value bits) {
  return std::exchange(*to, *to & static_cast<T>(bits));
}

template <class... Expected, class... Given>
cudaError_t launch_on_cpu(const cudaLaunchConfig_t* launch, void (*kernel)(Expected...),
                          Given&&... given) {
  gridDim = launch->gridDim;
  blockDim = launch->blockDim;
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
    block_on_cpu::run(blockDim.x, [&] { kernel(given...); });
  }
  return cudaSuccess;
}

#define cudaLaunchKernelEx launch_on_cpu
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static  // blocks do not overlap
