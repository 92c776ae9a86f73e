// Kernels on the CPU: their threads run one after the other, once their stream gets to the launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "cudart.h"

using std::max;
using std::min;

inline dim3 gridDim;
inline dim3 blockDim;
inline uint3 blockIdx;
inline uint3 threadIdx;

template <class T, class Value>
T atomicAdd(T* to, Value addend) {
  return std::exchange(*to, *to + static_cast<T>(addend));
}

template <class T>
T __ldcs(const T* from) {
  return *from;
}

template <class T>
void __stcs(T* to, const T& value) {
  *to = value;
}

// Every thread of the launch calls `thread`.
inline void launch_on_cpu(size_t blocks, unsigned threads, cudaStream_t stream,
                          const std::function<void()>& thread) {
  enqueue(stream, [=] {
    gridDim = dim3(static_cast<unsigned>(blocks));
    blockDim = dim3(threads);
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
        thread();
      }
    }
  });
}

#define __CUDACC__  // headers of kernels define device code if it is defined
