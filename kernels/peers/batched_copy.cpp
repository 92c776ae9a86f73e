// One cudaMemcpyBatchAsync with an entry per row; the indices must first come back to the host.
#include <vector>

#include "operation.h"

const Plan kPlan = {"peer", "first", "first", "gather", "none"};

#if CUDART_VERSION >= 12080
namespace {

cudaError_t copy_all(std::vector<void*>& destinations, std::vector<const void*>& sources,
                     std::vector<size_t>& sizes, cudaStream_t stream) {
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
}

void copy_rows(const Share& share, cudaStream_t stream) {
  const auto rows = static_cast<size_t>(share.rows);
  std::vector<int2> pairs(rows);
  check(cudaMemcpyAsync(pairs.data(), share.pairs, rows * sizeof(int2), cudaMemcpyDeviceToHost,
                        stream),
        "pairs");
  check(cudaStreamSynchronize(stream), "pairs");
  std::vector<const void*> sources(rows);
  std::vector<void*> destinations(rows);
  std::vector<size_t> sizes(rows, static_cast<size_t>(share.row_bytes));
  for (size_t i = 0; i < rows; ++i) {
    sources[i] = share.pool + int64_t{pairs[i].x} * share.row_bytes;
    destinations[i] = share.dst + int64_t{pairs[i].y} * share.row_bytes;
  }
  check(copy_all(destinations, sources, sizes, stream), "batch");
}

}  // namespace

Move prepare(const Share&, const Resources&) { return copy_rows; }
#else
Move prepare(const Share&, const Resources&) {
  throw std::runtime_error("cudaMemcpyBatchAsync needs CUDA 12.8 or newer");
}
#endif
