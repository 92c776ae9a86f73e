// Sorts the pairs of a share by their rows in the pool, on the stream of the launch.
#pragma once

#include <memory>

#include "../common/sort_pairs.h"
#include "operation.h"

// Bits of the row numbers of a pool.
inline int row_bits(int64_t pool_rows) {
  int bits = 0;
  while ((pool_rows - 1) >> bits != 0) {
    ++bits;
  }
  return bits;
}

class Sorter {
 public:
  // For `rows` pairs of shares like this one, by the bits of their source rows that put them into
  // ranges of the pool of at most `range_bytes` bytes.
  Sorter(const Share& share, int64_t rows, int64_t range_bytes)
      : rows_(rows), high_(row_bits(share.pool_rows)) {
    while (low_ < high_ && (int64_t{share.row_bytes} << (low_ + 1)) <= range_bytes) {
      ++low_;
    }
    check(sort(nullptr, nullptr, nullptr), "sort");
    sorted_ = on_device<int2>(static_cast<size_t>(rows_));
    scratch_ = on_device<uint8_t>(scratch_bytes_);
  }

  // The sorted pairs, in memory of the sorter.
  const int2* sorted(const int2* pairs, cudaStream_t stream) {
    check(sort(scratch_.get(), pairs, stream), "sort");
    return sorted_.get();
  }

 private:
  // As sort_pairs().
  cudaError_t sort(uint8_t* scratch, const int2* pairs, cudaStream_t stream) {
    return sort_pairs(scratch, scratch_bytes_, pairs, sorted_.get(), rows_, low_, high_, stream);
  }

  int64_t rows_;
  int low_ = 0;
  int high_;
  size_t scratch_bytes_ = 0;
  std::shared_ptr<int2[]> sorted_;
  std::shared_ptr<uint8_t[]> scratch_;
};
