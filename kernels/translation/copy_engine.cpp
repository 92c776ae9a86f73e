// The copy engine moves long pieces, evenly spaced over the pool.
#include "operation.h"

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  for (int64_t i = 0; i < walk.reads; ++i) {
    int4* dst = static_cast<int4*>(walk.dst) + i * walk.read_vectors;
    const cudaError_t status =
        cudaMemcpyAsync(dst, walk.pool + i * walk.stride, walk.read_vectors * sizeof(int4),
                        cudaMemcpyHostToDevice, stream);
    if (status != cudaSuccess) {
      return status;
    }
  }
  return cudaSuccess;
}
