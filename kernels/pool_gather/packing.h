// How a thread packs scattered rows into page-locked memory that is read from the CPU's caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator.h"
#include "packed_rows.h"

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kOwnAhead = 8;  // rows of the ring that are made writable ahead

// Rows that are needed later, null where there is none: one to fetch from the pool, one of the
// ring.
struct Later {
  const uint8_t* source;
  uint8_t* staging;
};

// Asks for a line of both: of the ring for the right to write it, which the GPU's last read
// likely took away; else each store waits for it. Compilers drop a function that does nothing but
// __builtin_prefetch.
inline void ask_for_line(const Later& later, int byte) {
  if (later.source != nullptr) {
    _mm_prefetch(reinterpret_cast<const char*>(later.source + byte), _MM_HINT_T2);
  }
  if (later.staging != nullptr) {
    asm volatile("prefetchw %0" : : "m"(later.staging[byte]));
  }
}

inline void ask_for_row(const Later& later) {
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    ask_for_line(later, byte);
  }
}

// Copies bytes [byte, end) of a row, 16 at a time, and asks for the same lines of later rows.
inline void copy_vectors(uint8_t* to, const uint8_t* from, int byte, int end, const Later& later) {
  for (; byte < end; byte += sizeof(__m128i)) {
    if (byte % kCacheLine == 0) {
      ask_for_line(later, byte);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + byte),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + byte)));
  }
}

// The same for a whole row, by lines.
__attribute__((target("avx512f"))) inline void copy_lines(uint8_t* to, const uint8_t* from,
                                                          const Later& later) {
  constexpr int kWhole = kRowBytes / kCacheLine * kCacheLine;
#pragma GCC unroll 16
  for (int byte = 0; byte < kWhole; byte += kCacheLine) {
    ask_for_line(later, byte);
    _mm512_storeu_si512(to + byte, _mm512_loadu_si512(from + byte));
  }
  copy_vectors(to, from, kWhole, kRowBytes, later);
}

// A core has few fetches on their way, so they are spread over the copy, and later rows are asked
// for while this one is copied. A string instruction lets nothing pass it; compilers make one of
// memcpy.
inline void copy_row(uint8_t* to, const uint8_t* from, const Later& later) {
#ifdef COPIED_BY_STRING  // a flag in study.yaml
  ask_for_row(later);
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

// Moves a row from the core's own cache to the shared one, where the copy engine reads it at the
// full rate. To CPUs that cannot do so, the instruction is one that does nothing.
inline void demote_row(uint8_t* row) {
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    asm volatile("cldemote %0" : : "m"(row[byte]));
  }
}

// Packs rows [first, end), which lie at `row_at(i)`, one after the other to `staging`, with
// ordinary stores, so that they stay in the caches. Calls `after_row(i)` after each.
template <class RowAt, class AfterRow>
void pack_into_caches(uint8_t* staging, int64_t first, int64_t end, const RowAt& row_at,
                      const AfterRow& after_row) {
  for (int64_t row = first; row < std::min(first + kAhead, end); ++row) {
    ask_for_row({row_at(row), row < first + kOwnAhead ? staging + row * kRowBytes : nullptr});
  }
  for (int64_t row = first; row < end; ++row) {
    const Later later{row + kAhead < end ? row_at(row + kAhead) : nullptr,
                      row + kOwnAhead < end ? staging + (row + kOwnAhead) * kRowBytes : nullptr};
    copy_row(staging + row * kRowBytes, row_at(row), later);
    after_row(row);
  }
}

// Unlike clflush, one of these need not wait for the one before. Every x86 server that PCIe 4 came
// with has it.
__attribute__((target("clflushopt"))) inline void flush_row(const uint8_t* row) {
  const auto line = [row](int byte) { return const_cast<uint8_t*>(row + byte); };
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    _mm_clflushopt(line(byte));
  }
  _mm_clflushopt(line(kRowBytes - 1));
}
