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
