// Launch arithmetic: how threads divide into warps and blocks.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarp = 32;
constexpr int kBlock = 256;  // threads of a block, unless a variant says otherwise

// Blocks of kBlock threads for at least `threads` threads.
inline int blocks_for(int64_t threads) { return static_cast<int>((threads + kBlock - 1) / kBlock); }

#ifdef __CUDACC__
// The calling thread's warp among those of the grid, and their number.
__device__ inline int64_t warp_index() {
  return (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
}
__device__ inline int64_t warp_count() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x / kWarp;
}

// The calling thread's lane in its warp.
__device__ inline int lane_index() { return threadIdx.x % kWarp; }

// Counts this block in the entry of the SM that it runs on.
__device__ inline void count_sm(uint32_t* sm_launches) {
  if (threadIdx.x == 0) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    atomicAdd(&sm_launches[sm], 1U);
  }
}
#endif
