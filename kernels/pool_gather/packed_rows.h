// How threads pack scattered rows: each takes a part after the other. Rows are fetched well before
// their thread comes to them, and written past the caches.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

constexpr int kCacheLine = 64;
constexpr int64_t kAhead = 32;  // rows that are on their way
constexpr int64_t kGroup = 4;   // rows that are written at once: whole lines, whatever their size
constexpr int64_t kPartRows = 128;  // of a large launch: threads begin and end within some 20 us

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

// The parts of a launch, which threads take one after the other.
class Parts {
 public:
  // For launches of at most `rows` rows; a part has `part_rows`, a multiple of kGroup, but the last
  // may have fewer.
  Parts(int64_t rows, int64_t part_rows)
      : part_rows_(part_rows), packed_(static_cast<size_t>((rows + part_rows - 1) / part_rows)) {}

  // A launch of so many rows, of which no part is taken yet. No thread is at work on another.
  void begin(int64_t rows) {
    rows_ = rows;
    ++launch_;
    next_.store(0, std::memory_order_relaxed);
  }

  int64_t rows() const { return rows_; }
  int64_t part_rows() const { return part_rows_; }
  int64_t count() const { return (rows_ + part_rows_ - 1) / part_rows_; }
  int64_t first_row(int64_t part) const { return part * part_rows_; }
  int64_t end_row(int64_t part) const { return std::min((part + 1) * part_rows_, rows_); }

  // A part that no other thread has; count() or more where none is left.
  int64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  void set_packed(int64_t part) {
    packed_[static_cast<size_t>(part)].store(launch_, std::memory_order_release);
  }

  bool is_packed(int64_t part) const {
    return packed_[static_cast<size_t>(part)].load(std::memory_order_acquire) == launch_;
  }

  void await_packed(int64_t part) const {
    while (!is_packed(part)) {
      _mm_pause();
    }
  }

 private:
  int64_t part_rows_;
  int64_t rows_ = 0;
  uint64_t launch_ = 0;
  std::vector<std::atomic<uint64_t>> packed_;  // the launch for which each part was packed last
  alignas(kCacheLine) std::atomic<int64_t> next_{0};  // away from what waiting for parts reads
};

// Packs parts until none is left: their rows, which lie at `row_at(i)`, one after the other to
// `staging`, where row 0 begins a line. Rows have `bytes` bytes, a multiple of 16. The last rows of
// a part are packed while the first ones of the next are on their way.
template <int kMostBytes, class RowAt>
void pack_parts(uint8_t* staging, Parts& parts, int bytes, const RowAt& row_at) {
  alignas(kCacheLine) uint8_t near[kGroup * kMostBytes];
  const int64_t ahead = std::min(kAhead, parts.part_rows());
  const auto fetch = [&](int64_t row) {
    if (row < parts.rows()) {
      prefetch_row(row_at(row), bytes);
    }
  };
  int64_t part = parts.take();
  for (int64_t row = parts.first_row(part); row < parts.first_row(part) + ahead; ++row) {
    fetch(row);
  }
  while (part < parts.count()) {
    const int64_t first = parts.first_row(part), end = parts.end_row(part);
    const int64_t last_rows = std::max(first, end - ahead);
    int64_t next = part;
    for (int64_t row = first; row < end; ++row) {
      if (row == last_rows) {
        next = parts.take();
      }
      fetch(row < last_rows ? row + ahead : parts.first_row(next) + row - last_rows);
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
    parts.set_packed(part);
    part = next;
  }
}
