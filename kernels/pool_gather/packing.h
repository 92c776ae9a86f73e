// Packing of scattered rows by a thread, into pinned memory that stays in the CPU's caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator.h"
#include "packed_rows.h"

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kStagingPrefetchRows = 8;  // rows of the ring made writable ahead of their stores

// Later rows to prefetch, each null where there is none: one of the pool, one of the ring.
struct Prefetch {
  const uint8_t* source;
  uint8_t* staging;
};

// Prefetches a line of both rows. That of the ring is prefetched for writing: the GPU's last read
// took it away, so a store would wait for it. Compilers drop a function that does nothing but
// __builtin_prefetch, hence the instruction.
inline void prefetch_line(const Prefetch& later, int byte) {
  if (later.source != nullptr) {
    _mm_prefetch(reinterpret_cast<const char*>(later.source + byte), _MM_HINT_T2);
  }
  if (later.staging != nullptr) {
    asm volatile("prefetchw %0" : : "m"(later.staging[byte]));
  }
}

inline void prefetch_rows(const Prefetch& later) {
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    prefetch_line(later, byte);
  }
}

// Copies bytes [byte, end) of a row, 16 at a time, and prefetches the same lines of later rows.
inline void copy_vectors(uint8_t* to, const uint8_t* from, int byte, int end,
                         const Prefetch& later) {
  for (; byte < end; byte += sizeof(__m128i)) {
    if (byte % kCacheLine == 0) {
      prefetch_line(later, byte);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + byte),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + byte)));
  }
}

// The same for a whole row, by lines.
__attribute__((target("avx512f"))) inline void copy_lines(uint8_t* to, const uint8_t* from,
                                                          const Prefetch& later) {
  constexpr int kWhole = kRowBytes / kCacheLine * kCacheLine;
#pragma GCC unroll 16
  for (int byte = 0; byte < kWhole; byte += kCacheLine) {
    prefetch_line(later, byte);
    _mm512_storeu_si512(to + byte, _mm512_loadu_si512(from + byte));
  }
  copy_vectors(to, from, kWhole, kRowBytes, later);
}

// Copies a row and prefetches later ones meanwhile: a core can have few fetches in flight, so they
// are spread over the copy. No load overtakes a string instruction, which compilers make of memcpy.
inline void copy_row(uint8_t* to, const uint8_t* from, const Prefetch& later) {
#ifdef COPIED_BY_STRING  // a flag in study.yaml
  prefetch_rows(later);
  int64_t bytes = kRowBytes;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  static const bool has_wide_vectors = __builtin_cpu_supports("avx512f");
  if (has_wide_vectors) {
    copy_lines(to, from, later);
  } else {
    copy_vectors(to, from, 0, kRowBytes, later);
  }
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
    prefetch_rows(
        {row_at(row), row < first + kStagingPrefetchRows ? staging + row * kRowBytes : nullptr});
  }
  for (int64_t row = first; row < end; ++row) {
    const Prefetch later{
        row + kPrefetchDistanceRows < end ? row_at(row + kPrefetchDistanceRows) : nullptr,
        row + kStagingPrefetchRows < end ? staging + (row + kStagingPrefetchRows) * kRowBytes
                                         : nullptr};
    copy_row(staging + row * kRowBytes, row_at(row), later);
    after_row(row);
  }
}

// Unlike clflush, clflushopt does not wait for the previous flush. Every x86 server with PCIe 4 has
// it.
__attribute__((target("clflushopt"))) inline void flush_row(const uint8_t* row) {
  const auto line = [row](int byte) { return const_cast<uint8_t*>(row + byte); };
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    _mm_clflushopt(line(byte));
  }
  _mm_clflushopt(line(kRowBytes - 1));
}
