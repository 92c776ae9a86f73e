// The bits of their source rows by which pairs are sorted.
#pragma once

#include <algorithm>
#include <cstdint>

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

// The bits that put rows, each `row_bytes` from the next, into ranges of at most `range_bytes`.
inline Bits range_bits(int64_t pool_rows, int64_t row_bytes, int64_t range_bytes) {
  Bits bits = all_bits(pool_rows);
  while (bits.low < bits.high && (row_bytes << (bits.low + 1)) <= range_bytes) {
    ++bits.low;
  }
  return bits;
}

// The same for ranges of half of the memory that the GPU holds translations of, because the rows in
// flight may lie in two ranges. One translation covers `page_bytes`. No bits if the GPU holds all
// translations that `rows` rows can need, so that their order cannot matter.
inline Bits translation_bits(int64_t rows, int64_t pool_rows, int64_t row_bytes, int64_t held_bytes,
                             int64_t page_bytes) {
  const bool is_all_held = std::min(rows * page_bytes, pool_rows * row_bytes) <= held_bytes;
  return is_all_held ? Bits{0, 0} : range_bits(pool_rows, row_bytes, held_bytes / 2);
}
