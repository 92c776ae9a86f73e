// The bits of their source rows by which pairs are sorted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator.h"

// Host memory that the GPU holds translations of, and that one translation covers. study.yaml sets
// the macros.
constexpr int64_t kHeldBytes = int64_t{HELD_MIB} << 20;
constexpr int64_t kPageBytes = int64_t{PAGE_KIB} << 10;

// Bits [low, high) of a row number; none if low == high.
struct Bits {
  int low;
  int high;
};

// All bits of the rows of a pool.
inline Bits all_bits(int64_t pool_rows) {
  int high = 0;
  while (((pool_rows - 1) >> high) != 0) {
    ++high;
  }
  return {0, high};
}

// The bits that put rows into ranges of the pool. A range is half of the memory that the GPU holds
// translations of, because the rows in flight may lie in two ranges. No bits if the GPU holds all
// translations that `rows` rows can need, so that their order cannot matter.
inline Bits sort_bits(int64_t rows, int64_t pool_rows) {
  if (std::min(rows * kPageBytes, pool_rows * kSlotBytes) <= kHeldBytes) {
    return {0, 0};
  }
  Bits bits = all_bits(pool_rows);
  while ((int64_t{kSlotBytes} << (bits.low + 1)) <= kHeldBytes / 2) {
    ++bits.low;
  }
  bits.low = std::min(bits.low, bits.high);
  return bits;
}
