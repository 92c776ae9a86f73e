// The host writes the values to pageable memory, whose copy the driver has to stage.
#include <vector>

#include "operation.h"

cudaError_t launch(const Fill& fill, cudaStream_t stream) {
  const std::vector<float> values(static_cast<size_t>(fill.count), fill.value);
  const cudaError_t status = cudaMemcpyAsync(fill.dst, values.data(), values.size() * sizeof(float),
                                             cudaMemcpyHostToDevice, stream);
  return status == cudaSuccess ? cudaStreamSynchronize(stream) : status;
}
