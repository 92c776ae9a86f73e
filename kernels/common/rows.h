// Rows of a gather as 16-byte vectors. A study's Gather has source_bytes() and destination_bytes(),
// which say where a row begins.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

template <class Gather>
HOST_DEVICE inline const int4* source_vectors(const Gather& gather, int64_t row) {
  return reinterpret_cast<const int4*>(source_bytes(gather, row));
}

template <class Gather>
HOST_DEVICE inline int4* destination_vectors(const Gather& gather, int64_t row) {
  return reinterpret_cast<int4*>(destination_bytes(gather, row));
}

#ifdef __CUDACC__
// Where a row is read and where it is written.
struct RowVectors {
  const int4* src;
  int4* dst;
};

// The row of a pair, by the pair's number.
template <class Gather>
__device__ inline RowVectors row_of_pair(const Gather& gather, int64_t index) {
  const int2 pair = gather.pairs[index];
  return {source_vectors(gather, pair.x), destination_vectors(gather, pair.y)};
}
#endif
