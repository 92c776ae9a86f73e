// The pairs of a share, for ways of moving whose every row is an argument.
#pragma once

#include <vector>

#include "operation.h"

// Copies the pairs to the host, in the order of `stream`, and waits for them.
inline std::vector<int2> pairs_on_host(const Share& share, cudaStream_t stream) {
  std::vector<int2> pairs(static_cast<size_t>(share.rows));
  check(cudaMemcpyAsync(pairs.data(), share.pairs, pairs.size() * sizeof(int2),
                        cudaMemcpyDeviceToHost, stream),
        "pairs");
  check(cudaStreamSynchronize(stream), "pairs");
  return pairs;
}
