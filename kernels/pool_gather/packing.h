// Packing of scattered rows by a thread, into pinned memory that stays in the CPU's caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../common/row_packing.h"
#include "operator.h"

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kStagingPrefetchRows = 8;  // rows of the ring made writable ahead of their stores

// Copies a row and prefetches later ones meanwhile: a core can have few fetches in flight, so they
// are spread over the copy. No load overtakes a string instruction, which compilers make of memcpy.
inline void copy_row(RowToPack row, const RowToPack& later) {
#ifdef COPIED_BY_STRING  // a flag in study.yaml
  prefetch_row_to_pack<kRowBytes>(later);
  int64_t bytes = kRowBytes;
  asm volatile("rep movsb" : "+D"(row.to), "+S"(row.from), "+c"(bytes) : : "memory");
#else
  pack_row<kRowBytes>(row, later);
#endif
}

// Moves a row from the core's cache to the shared one, where the copy engine reads it at the full
// rate. CPUs without the instruction execute it as a no-op.
inline void demote_row(uint8_t* row) {
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    asm volatile("cldemote %0" : : "m"(row[byte]));
  }
}

// Packs rows [first, end) by ordinary stores, so that they stay in the caches. Row i is read at
// `row_at(i)` and written to `staging + i * kRowBytes`. Calls `after_row(i)` after each.
template <class RowAt, class AfterRow>
void pack_into_caches(uint8_t* staging, int64_t first, int64_t end, const RowAt& row_at,
                      const AfterRow& after_row) {
  for (int64_t row = first; row < std::min(first + kPrefetchDistanceRows, end); ++row) {
    prefetch_row_to_pack<kRowBytes>(
        {row_at(row), row < first + kStagingPrefetchRows ? staging + row * kRowBytes : nullptr});
  }
  for (int64_t row = first; row < end; ++row) {
    const RowToPack later{
        row + kPrefetchDistanceRows < end ? row_at(row + kPrefetchDistanceRows) : nullptr,
        row + kStagingPrefetchRows < end ? staging + (row + kStagingPrefetchRows) * kRowBytes
                                         : nullptr};
    copy_row({row_at(row), staging + row * kRowBytes}, later);
    after_row(row);
  }
}
