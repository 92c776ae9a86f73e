// One cudaMemcpyBatchAsync with an entry per row; the pairs must be copied to the host first.
#include <vector>

#include "../common/batch_copy.h"
#include "../common/check.h"
#include "operator.h"

void launch(const Gather& gather, cudaStream_t stream) {
  const auto rows = static_cast<size_t>(gather.rows);
  std::vector<int2> pairs(rows);
  check(cudaMemcpyAsync(pairs.data(), gather.pairs, rows * sizeof(int2), cudaMemcpyDeviceToHost,
                        stream),
        "pairs");
  check(cudaStreamSynchronize(stream), "pairs");

  std::vector<const void*> sources(rows);
  std::vector<void*> destinations(rows);
  std::vector<size_t> sizes(rows, kRowBytes);
  for (size_t i = 0; i < rows; ++i) {
    sources[i] = source_bytes(gather, pairs[i].x);
    destinations[i] = destination_bytes(gather, pairs[i].y);
  }
  check(copy_batch(destinations, sources, sizes, stream), "cudaMemcpyBatchAsync");
}
