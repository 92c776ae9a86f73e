// Sorting of pairs (source row, destination row) on the GPU.
#pragma once

#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

// Sorts `rows` pairs by bits [low, high) of their source rows, on a stream. Without scratch memory,
// only sets `scratch_bytes` to the size needed.
inline cudaError_t sort_pairs(uint8_t* scratch, size_t& scratch_bytes, const int2* pairs,
                              int2* sorted, int64_t rows, int low, int high, cudaStream_t stream) {
  // The source row is the lower half of a pair read as one number.
  return cub::DeviceRadixSort::SortKeys(
      scratch, scratch_bytes, reinterpret_cast<const uint64_t*>(pairs),
      reinterpret_cast<uint64_t*>(sorted), rows, low, high, stream);
}
