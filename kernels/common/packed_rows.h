// Packing of scattered rows by a thread: rows are prefetched and written past the caches.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

constexpr int kCacheLine = 64;
constexpr int64_t kPrefetchDistanceRows = 32;
constexpr int64_t kGroup = 4;  // rows written at once: whole lines, whatever the size of a row

// Prefetches into L2, which can wait for several times as many lines as L1.
inline void prefetch_row(const uint8_t* row, int bytes) {
  for (int byte = 0; byte < bytes; byte += kCacheLine) {
    _mm_prefetch(reinterpret_cast<const char*>(row + byte), _MM_HINT_T2);
  }
}

// Writes the whole lines among `bytes`. Returns the number of bytes written.
__attribute__((target("avx512f"))) inline int64_t write_lines(uint8_t* to, const uint8_t* from,
                                                              int64_t bytes) {
  int64_t byte = 0;
  for (; byte + kCacheLine <= bytes; byte += kCacheLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + byte), _mm512_load_si512(from + byte));
  }
  return byte;
}

// Writes to staging memory that only a copy engine reads, in whole lines where the CPU can: a line
// that loads from memory interrupt is written twice. `to` and `from` begin lines; `bytes` is a
// multiple of 16. Later stores may overtake these until _mm_sfence().
inline void write_past_caches(uint8_t* to, const uint8_t* from, int64_t bytes) {
  static const bool has_whole_lines = __builtin_cpu_supports("avx512f");
  for (int64_t byte = has_whole_lines ? write_lines(to, from, bytes) : 0; byte < bytes;
       byte += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + byte),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + byte)));
  }
}

// Packs rows [first, end) of `bytes` bytes, a multiple of 16. Row i is read at `row_at(i)` and
// written to `staging + i * bytes`, where row 0 begins a line. `first` is a multiple of kGroup.
template <int kMaxBytes, class RowAt>
void pack_rows(uint8_t* staging, int64_t first, int64_t end, int bytes, const RowAt& row_at) {
  alignas(kCacheLine) uint8_t group[kGroup * kMaxBytes];
  for (int64_t row = first; row < std::min(first + kPrefetchDistanceRows, end); ++row) {
    prefetch_row(row_at(row), bytes);
  }
  for (int64_t row = first; row < end; ++row) {
    if (row + kPrefetchDistanceRows < end) {
      prefetch_row(row_at(row + kPrefetchDistanceRows), bytes);
    }
    const int64_t held = (row - first) % kGroup;
    const uint8_t* from = row_at(row);
    for (int byte = 0; byte < bytes; byte += sizeof(__m128i)) {
      _mm_store_si128(reinterpret_cast<__m128i*>(group + held * bytes + byte),
                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + byte)));
    }
    if (held + 1 == kGroup || row + 1 == end) {
      write_past_caches(staging + (row - held) * bytes, group, (held + 1) * bytes);
    }
  }
  _mm_sfence();
}
