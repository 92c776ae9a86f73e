// Sorting of pairs (source row, destination row) on the GPU, on the stream of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <memory>

#include "memory.h"
#include "sort_bits.h"

class Sorter {
 public:
  // For launches of `rows` pairs, by these bits of the source row.
  Sorter(int64_t rows, Bits bits) : rows_(rows), bits_(bits) {
    if (bits.low < bits.high) {
      check(sort(nullptr, nullptr, nullptr), "sort");
      sorted_ = on_device<int2>(static_cast<size_t>(rows));
      scratch_ = on_device<uint8_t>(scratch_bytes_);
    }
  }

  // The sorted pairs, in memory of the sorter; `pairs` itself if there are no bits to sort by.
  const int2* sorted(const int2* pairs, cudaStream_t stream) {
    if (sorted_ == nullptr) {
      return pairs;
    }
    check(sort(scratch_.get(), pairs, stream), "sort");
    return sorted_.get();
  }

 private:
  // Without scratch memory, only sets `scratch_bytes_` to the size needed. The source row is the
  // lower half of a pair read as one number.
  cudaError_t sort(uint8_t* scratch, const int2* pairs, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(
        scratch, scratch_bytes_, reinterpret_cast<const uint64_t*>(pairs),
        reinterpret_cast<uint64_t*>(sorted_.get()), rows_, bits_.low, bits_.high, stream);
  }

  int64_t rows_;
  Bits bits_;
  size_t scratch_bytes_ = 0;
  std::shared_ptr<int2[]> sorted_;
  std::shared_ptr<uint8_t[]> scratch_;
};
