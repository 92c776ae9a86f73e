// A thread's copy of scattered rows into packed memory that stays in the CPU's caches.
#pragma once

#include "packed_rows.h"

// A row of the pool and its place in packed memory; null where there is none.
struct RowToPack {
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;
};

// Prefetches one line of both. The place is prefetched for writing: the GPU's last read took the
// line away, so a store would wait for it. Compilers drop a function of builtin prefetches only.
inline void prefetch_line(const RowToPack& row, int byte) {
  if (row.from != nullptr) {
    _mm_prefetch(reinterpret_cast<const char*>(row.from + byte), _MM_HINT_T2);
  }
  if (row.to != nullptr) {
    asm volatile("prefetchw %0" : : "m"(row.to[byte]));
  }
}

template <int kBytes>
inline void prefetch_row_to_pack(const RowToPack& row) {
  for (int byte = 0; byte < kBytes; byte += kCacheLine) {
    prefetch_line(row, byte);
  }
}

inline void pack_vector(const RowToPack& row, int byte) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(row.to + byte),
                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.from + byte)));
}

template <int kBytes>
__attribute__((target("avx512f"))) inline void pack_row_wide(const RowToPack& row,
                                                             const RowToPack& later) {
  constexpr int kWhole = kBytes / kCacheLine * kCacheLine;
#pragma GCC unroll 16
  for (int byte = 0; byte < kWhole; byte += kCacheLine) {
    prefetch_line(later, byte);
    _mm512_storeu_si512(row.to + byte, _mm512_loadu_si512(row.from + byte));
  }
  if (kWhole < kBytes) {
    prefetch_line(later, kWhole);
  }
  for (int byte = kWhole; byte < kBytes; byte += 16) {
    pack_vector(row, byte);
  }
}

// Copies a row by ordinary stores, and meanwhile prefetches a later one line by line: a core can
// have few fetches in flight.
template <int kBytes>
inline void pack_row(const RowToPack& row, const RowToPack& later) {
  static_assert(kBytes % 16 == 0, "rows are whole vectors of 16 bytes");
  static const bool has_wide_vectors = __builtin_cpu_supports("avx512f");
  if (has_wide_vectors) {
    pack_row_wide<kBytes>(row, later);
    return;
  }
  for (int byte = 0; byte < kBytes; byte += 16) {
    if (byte % kCacheLine == 0) {
      prefetch_line(later, byte);
    }
    pack_vector(row, byte);
  }
}

// Flushes a row from the CPU's caches. Unlike clflush, clflushopt does not wait for the previous
// flush. Every x86 server with PCIe 4 has it.
template <int kBytes>
__attribute__((target("clflushopt"))) inline void flush_row(const uint8_t* row) {
  for (int byte = 0; byte < kBytes; byte += kCacheLine) {
    _mm_clflushopt(const_cast<uint8_t*>(row + byte));
  }
  _mm_clflushopt(const_cast<uint8_t*>(row + kBytes - 1));  // it may begin within a line
}
