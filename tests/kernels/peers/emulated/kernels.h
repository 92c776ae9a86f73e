// Kernels on the CPU: their threads run one after the other, once their stream gets to the launch.
#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "../../cudart.h"

inline dim3 gridDim;
inline dim3 blockDim;
inline uint3 blockIdx;
inline uint3 threadIdx;

inline unsigned atomicAdd(unsigned* counter, unsigned addend) {
  return (*counter += addend) - addend;
}

// Every thread of the launch calls `thread`.
inline void launch_emulated(unsigned blocks, unsigned threads, cudaStream_t stream,
                            const std::function<void()>& thread) {
  enqueue(stream, [=] {
    gridDim = dim3(blocks);
    blockDim = dim3(threads);
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
        thread();
      }
    }
  });
}

#define __CUDACC__  // headers of kernels/common define device code if it is defined
