// cudaMemcpyBatchAsync, whose signature differs between versions of CUDA.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <vector>

// Enqueues a copy of sizes[i] bytes from sources[i] to destinations[i] for each i, all of equal
// length, in the order of `stream`. Throws std::runtime_error before CUDA 12.8; the caller checks
// the status returned.
inline cudaError_t copy_batch(std::vector<void*>& destinations, std::vector<const void*>& sources,
                              std::vector<size_t>& sizes, cudaStream_t stream) {
#if CUDART_VERSION >= 12080
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
#if CUDART_VERSION >= 13000
  return cudaMemcpyBatchAsync(destinations.data(), sources.data(), sizes.data(), sizes.size(),
                              &attributes, &first, 1, stream);
#else
  size_t failed = 0;
  return cudaMemcpyBatchAsync(destinations.data(), const_cast<void**>(sources.data()), sizes.data(),
                              sizes.size(), &attributes, &first, 1, &failed, stream);
#endif
#else
  throw std::runtime_error("cudaMemcpyBatchAsync needs CUDA 12.8 or newer");
#endif
}
