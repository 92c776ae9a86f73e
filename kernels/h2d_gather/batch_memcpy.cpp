// One cudaMemcpyBatchAsync with an entry per row; the indices must first come back to the host.
#include <stdexcept>
#include <vector>

#include "operator.h"

void launch(const Gather& gather, cudaStream_t stream) {
#if CUDART_VERSION >= 12080
  const auto rows = static_cast<size_t>(gather.rows);
  std::vector<int2> pairs(rows);
  cudaMemcpyAsync(pairs.data(), gather.pairs, rows * sizeof(int2), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);

  std::vector<const void*> sources(rows);
  std::vector<void*> destinations(rows);
  std::vector<size_t> sizes(rows, kRowBytes);
  for (size_t i = 0; i < rows; ++i) {
    sources[i] = source_bytes(gather, pairs[i].x);
    destinations[i] = destination_bytes(gather, pairs[i].y);
  }
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t status = cudaMemcpyBatchAsync(destinations.data(), sources.data(), sizes.data(),
                                                  rows, &attributes, &first, 1, stream);
#else
  size_t failed = 0;
  const cudaError_t status =
      cudaMemcpyBatchAsync(destinations.data(), const_cast<void**>(sources.data()), sizes.data(),
                           rows, &attributes, &first, 1, &failed, stream);
#endif
  if (status != cudaSuccess) {
    throw std::runtime_error(cudaGetErrorString(status));
  }
#else
  throw std::runtime_error("cudaMemcpyBatchAsync needs CUDA 12.8 or newer");
#endif
}
