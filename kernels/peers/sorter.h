// Puts the pairs of a share in the order of the pool, on the stream of the launch.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <memory>

#include "operation.h"

// How many bits tell the rows of a pool apart.
inline int row_bits(int64_t pool_rows) {
  int bits = 0;
  while ((pool_rows - 1) >> bits != 0) {
    ++bits;
  }
  return bits;
}

class Sorter {
 public:
  // For `rows` pairs of a share like this one, by the bits of their source rows that put them into
  // ranges of the pool of at most so many bytes.
  Sorter(const Share& share, int64_t rows, int64_t range_bytes)
      : rows_(rows), high_(row_bits(share.pool_rows)) {
    while (low_ < high_ && (int64_t{share.row_bytes} << (low_ + 1)) <= range_bytes) {
      ++low_;
    }
    check(sort(nullptr, nullptr, nullptr), "sort");
    sorted_ = on_device<int2>(static_cast<size_t>(rows_));
    scratch_ = on_device<uint8_t>(scratch_bytes_);
  }

  // The pairs in order, in memory of the sorter.
  const int2* sorted(const int2* pairs, cudaStream_t stream) {
    check(sort(scratch_.get(), pairs, stream), "sort");
    return sorted_.get();
  }

 private:
  // Without scratch, only says how much is needed. The source row is the lower half of a pair read
  // as one number.
  cudaError_t sort(uint8_t* scratch, const int2* pairs, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(
        scratch, scratch_bytes_, reinterpret_cast<const uint64_t*>(pairs),
        reinterpret_cast<uint64_t*>(sorted_.get()), rows_, low_, high_, stream);
  }

  int64_t rows_;
  int low_ = 0;
  int high_;
  size_t scratch_bytes_ = 0;
  std::shared_ptr<int2[]> sorted_;
  std::shared_ptr<uint8_t[]> scratch_;
};
