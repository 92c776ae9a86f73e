// A copy of as many contiguous bytes, by the copy engine of the stream's GPU.
#pragma once

#include "operation.h"

inline void copy(const Share& share, cudaStream_t stream) {
  cudaMemcpyAsync(share.dst + share.destination * share.row_bytes,
                  share.pool + share.source * share.row_bytes,
                  static_cast<size_t>(share.rows * share.row_bytes), cudaMemcpyDefault, stream);
}
