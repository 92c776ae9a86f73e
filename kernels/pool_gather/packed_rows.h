// How a thread packs scattered rows: they are fetched well before it comes to them, and written
// past the caches.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

constexpr int kCacheLine = 64;
constexpr int64_t kAhead = 32;  // rows that are on their way
constexpr int64_t kGroup = 4;   // rows that are written at once: whole lines, whatever their size

// Into L2, which can wait for several times as many lines as L1.
inline void prefetch_row(const uint8_t* row, int bytes) {
  for (int byte = 0; byte < bytes; byte += kCacheLine) {
    _mm_prefetch(reinterpret_cast<const char*>(row + byte), _MM_HINT_T2);
  }
}

// Writes the whole lines among `bytes`. Returns how many bytes that were.
__attribute__((target("avx512f"))) inline int64_t write_lines(uint8_t* to, const uint8_t* from,
                                                              int64_t bytes) {
  int64_t byte = 0;
  for (; byte + kCacheLine <= bytes; byte += kCacheLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + byte), _mm512_load_si512(from + byte));
  }
  return byte;
}

// To staging memory, where nobody reads it but a copy engine. Lines are written whole, at once
// where the CPU can: a line that loads from memory interrupt is written twice. `to` and `from`
// begin lines, `bytes` is a multiple of 16. Such stores are not ordered with later ones before
// _mm_sfence().
inline void write_past_caches(uint8_t* to, const uint8_t* from, int64_t bytes) {
  static const bool has_whole_lines = __builtin_cpu_supports("avx512f");
  for (int64_t byte = has_whole_lines ? write_lines(to, from, bytes) : 0; byte < bytes;
       byte += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + byte),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + byte)));
  }
}

// Packs rows [first, end), which lie at `row_at(i)`, one after the other to `staging`, where row 0
// begins a line; `first` is a multiple of kGroup. Rows have `bytes` bytes, a multiple of 16.
template <int kMostBytes, class RowAt>
void pack_rows(uint8_t* staging, int64_t first, int64_t end, int bytes, const RowAt& row_at) {
  alignas(kCacheLine) uint8_t near[kGroup * kMostBytes];
  for (int64_t row = first; row < std::min(first + kAhead, end); ++row) {
    prefetch_row(row_at(row), bytes);
  }
  for (int64_t row = first; row < end; ++row) {
    if (row + kAhead < end) {
      prefetch_row(row_at(row + kAhead), bytes);
    }
    const int64_t held = (row - first) % kGroup;
    const uint8_t* from = row_at(row);
    for (int byte = 0; byte < bytes; byte += sizeof(__m128i)) {
      _mm_store_si128(reinterpret_cast<__m128i*>(near + held * bytes + byte),
                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + byte)));
    }
    if (held + 1 == kGroup || row + 1 == end) {
      write_past_caches(staging + (row - held) * bytes, near, (held + 1) * bytes);
    }
  }
  _mm_sfence();
}
