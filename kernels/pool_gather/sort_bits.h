// The bits of their source rows by which the pairs of this study are sorted.
#pragma once

#include <cstdint>

#include "../common/sort_bits.h"
#include "operator.h"

// Host memory that the GPU holds translations of, and that one translation covers. study.yaml sets
// the macros.
constexpr int64_t kHeldBytes = int64_t{HELD_MIB} << 20;
constexpr int64_t kPageBytes = int64_t{PAGE_KIB} << 10;

inline Bits sort_bits(int64_t rows, int64_t pool_rows) {
  return translation_bits(rows, pool_rows, kSlotBytes, kHeldBytes, kPageBytes);
}
