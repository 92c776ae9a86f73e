// Threads pack scattered rows into a ring of page-locked staging memory; the copy engine moves what
// is packed. What a thread is late with, the caller packs.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "operator.h"
#include "packed_rows.h"
#include "scratch.h"
#include "workers.h"

#ifndef MOST_WORKERS  // a flag in study.yaml
#define MOST_WORKERS 64
#endif
#ifndef PACKED_IN_CORE  // a flag in study.yaml
#define PACKED_IN_CORE (1 << 20)
#endif
#ifndef PATIENCE_US  // a flag in study.yaml
#define PATIENCE_US 100
#endif

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kChunks = 1024;  // of a launch, unless they get too small or too large
constexpr int64_t kFewestRows = 16;
constexpr int64_t kMostRows = 1024;
constexpr size_t kInFlight = 2;  // copies of packed rows, so that the copy engine always has one
// A copy moves at most one of so many parts of the ring: room comes back before all of it is taken.
constexpr int64_t kParts = 4;

#ifdef PAST_CACHES  // a flag in study.yaml
constexpr bool kPastCaches = true;
constexpr int64_t kRingBytes = std::numeric_limits<int64_t>::max();  // room for all rows
#else
// Meant for the shared cache of a server's CPU: what the copy engine reads there leaves the host's
// memory to the rows. Rings as small as the cores' own caches were slower in trials.
constexpr bool kPastCaches = false;
constexpr int64_t kRingBytes = 32 << 20;
#endif

// How long a chunk is waited for that is next to be sent: about twice what packing a chunk of a
// large launch takes, and longer than a small launch. A worker may lose its CPU for milliseconds,
// which a guest of a hypervisor cannot prevent.
constexpr std::chrono::microseconds kPatience{PATIENCE_US};

constexpr int64_t kOwnAhead = 8;  // rows of the ring that are made writable ahead
// What a core's own cache may hold of them, beside what they are copied from.
constexpr int64_t kPackedInCore = PACKED_IN_CORE;

// Rows that are needed later, null where there is none: one to fetch from the pool, one of the
// ring.
struct Later {
  const uint8_t* source;
  uint8_t* staging;
};

// Asks for a line of both: of the ring for the right to write it, which the copy engine's last read
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
// ordinary stores, so that they stay in the caches; in the shared one if they are demoted.
template <class RowAt>
void pack_into_caches(uint8_t* staging, int64_t first, int64_t end, bool demoted,
                      const RowAt& row_at) {
  for (int64_t row = first; row < std::min(first + kAhead, end); ++row) {
    ask_for_row({row_at(row), row < first + kOwnAhead ? staging + row * kRowBytes : nullptr});
  }
  for (int64_t row = first; row < end; ++row) {
    const Later later{row + kAhead < end ? row_at(row + kAhead) : nullptr,
                      row + kOwnAhead < end ? staging + (row + kOwnAhead) * kRowBytes : nullptr};
    copy_row(staging + row * kRowBytes, row_at(row), later);
    if (demoted && row > first) {
      demote_row(staging + (row - 1) * kRowBytes);  // whose last line is now written as well
    }
  }
  if (demoted) {
    demote_row(staging + (end - 1) * kRowBytes);
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

class Packer {
 public:
  // For launches of at most `rows` rows.
  Packer(int64_t rows, const std::vector<int>& cpus)
      : chunk_rows_(std::clamp(rows / kChunks / kGroup * kGroup, kFewestRows, kMostRows)),
        ring_(std::min(chunks(rows), kRingBytes / (chunk_rows_ * kRowBytes))),
        pairs_(page_locked<int2>(static_cast<size_t>(rows))),
        staging_(page_locked<uint8_t>(static_cast<size_t>(ring_ * chunk_rows_ * kRowBytes))),
        aside_(page_locked<uint8_t>(kInFlight * static_cast<size_t>(chunk_rows_ * kRowBytes))),
        packed_(static_cast<size_t>(chunks(rows))),
        cpus_(worker_cpus(cpus, MOST_WORKERS)),
        last_rows_(static_cast<int64_t>(cpus_.size()) * kPackedInCore / kRowBytes),
        workers_(cpus_) {}

  // Enqueues the copy of the pairs to the host. pack() has to follow, with the same gather.
  void fetch(const Gather& gather, cudaStream_t stream) {
    workers_.finish();  // who was late may still read the pairs of the launch before
    check(cudaMemcpyAsync(pairs_.get(), gather.pairs, gather.rows * sizeof(int2),
                          cudaMemcpyDeviceToHost, stream),
          "pairs");
  }

  // Packs the rows, and enqueues their copies as they are packed. Returns when all are enqueued.
  void pack(const Gather& gather, cudaStream_t stream) {
    const OffCpus aside(cpus_);
    // With the pairs, all copies of the launch before have arrived: the ring is free.
    check(cudaStreamSynchronize(stream), "pairs");
    ++launch_;
    arrived_.store(0, std::memory_order_relaxed);
    begin(gather, [this, gather](int64_t chunk, int64_t first, int64_t end) {
      while (chunk - ring_ >= arrived_.load(std::memory_order_acquire) || is_held(chunk)) {
        _mm_pause();
      }
      pack_chunk(gather, staged(chunk), first, end);
      packed_[static_cast<size_t>(chunk)].store(launch_, std::memory_order_release);
    });
    try {
      send_chunks(gather, stream);
    } catch (...) {
      // Without waiting for room, all threads end before anything they use is freed.
      arrived_.store(chunks(gather.rows), std::memory_order_release);
      workers_.finish();
      throw;
    }
  }

  // Flushes the rows from the CPU's caches, where rows of a pool in use mostly are not.
  void flush(const Gather& gather) {
    const OffCpus aside(cpus_);
    workers_.finish();
    check(
        cudaMemcpy(pairs_.get(), gather.pairs, gather.rows * sizeof(int2), cudaMemcpyDeviceToHost),
        "pairs");
    begin(gather, [this, gather](int64_t, int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        flush_row(source_bytes(gather, pairs_[i].x));
      }
      _mm_mfence();
    });
    workers_.finish();
  }

 private:
  int64_t chunks(int64_t rows) const { return (rows + chunk_rows_ - 1) / chunk_rows_; }

  // Has each thread do the next chunk, until there is none: `work(chunk, its first row, its end)`.
  template <typename Work>
  void begin(const Gather& gather, Work work) {
    next_.store(0, std::memory_order_relaxed);
    workers_.start([this, gather, count = chunks(gather.rows), work] {
      for (;;) {
        const int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= count) {
          return;
        }
        work(chunk, chunk * chunk_rows_, row_end(gather, chunk));
      }
    });
  }

  // Packs rows [first, end) one after the other to `to`.
  void pack_chunk(const Gather& gather, uint8_t* to, int64_t first, int64_t end) const {
    uint8_t* staging = to - first * kRowBytes;
    const auto row_at = [&](int64_t i) { return source_bytes(gather, pairs_[i].x); };
    if constexpr (kPastCaches) {
      pack_rows<kRowBytes>(staging, first, end, kRowBytes, row_at);
    } else {
      // Other rows leave the core's cache for those that follow, which takes less time.
      const bool last = end > gather.rows - last_rows_;
      pack_into_caches(staging, first, end, last, row_at);
    }
  }

  // Where the rows of a chunk are packed.
  uint8_t* staged(int64_t chunk) const {
    return staging_.get() + chunk % ring_ * chunk_rows_ * kRowBytes;
  }

  bool is_packed(int64_t chunk) const {
    return packed_[static_cast<size_t>(chunk)].load(std::memory_order_acquire) == launch_;
  }

  // Whether the room of a chunk is still written to by a worker that was late with the one before
  // it there.
  bool is_held(int64_t chunk) const { return chunk >= ring_ && !is_packed(chunk - ring_); }

  // Waits for a chunk for which room has come back. False if its worker is late, or has to wait for
  // another one that is.
  bool is_packed_in_time(int64_t chunk) const {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!is_packed(chunk)) {
      if (is_held(chunk) || std::chrono::steady_clock::now() > until) {
        return false;
      }
      _mm_pause();
    }
    return true;
  }

  // Between two copies the copy engine pauses, so they should be few. What is packed while some are
  // on their way is sent at once: copies get longer for as long as packing is the faster of the
  // two, up to a part of the ring.
  void send_chunks(const Gather& gather, cudaStream_t stream) {
    std::array<int64_t, kInFlight> ends{};  // of the chunks of the copies on their way
    size_t oldest = 0;                      // of these
    const auto await_oldest = [&] {
      check(cudaEventSynchronize(sent_[oldest % kInFlight].get()), "packed rows");
      arrived_.store(ends[oldest % kInFlight], std::memory_order_release);
      ++oldest;
    };
    int64_t first = 0;
    for (size_t copy = 0; first < chunks(gather.rows); ++copy) {
      if (copy - oldest == kInFlight) {
        await_oldest();
      }
      while (first - ring_ >= arrived_.load(std::memory_order_relaxed)) {
        await_oldest();  // there is no room for it yet
      }
      const size_t turn = copy % kInFlight;
      const uint8_t* packed = staged(first);
      int64_t end = first + 1;
      if (is_packed_in_time(first)) {
        const int64_t round = (first / ring_ + 1) * ring_;  // where the ring begins again
        const int64_t most = first + (ring_ + kParts - 1) / kParts;
        while (end < std::min({chunks(gather.rows), round, most}) && is_packed(end)) {
          ++end;
        }
      } else {
        uint8_t* aside = aside_.get() + turn * static_cast<size_t>(chunk_rows_ * kRowBytes);
        pack_chunk(gather, aside, first * chunk_rows_, row_end(gather, first));
        packed = aside;
      }
      send_rows(gather, packed, first * chunk_rows_, row_end(gather, end - 1), stream);
      check(cudaEventRecord(sent_[turn].get(), stream), "packed rows");
      ends[turn] = end;
      first = end;
    }
  }

  // Rows [first, end), which are packed from `packed` on: one copy for all whose destinations
  // follow each other.
  void send_rows(const Gather& gather, const uint8_t* packed, int64_t first, int64_t end,
                 cudaStream_t stream) {
    const uint8_t* staging = packed - first * kRowBytes;
    while (first < end) {
      int64_t next = first + 1;
      while (next < end && pairs_[next].y == pairs_[next - 1].y + 1) {
        ++next;
      }
      check(cudaMemcpyAsync(destination_bytes(gather, pairs_[first].y), staging + first * kRowBytes,
                            (next - first) * kRowBytes, cudaMemcpyHostToDevice, stream),
            "packed rows");
      first = next;
    }
  }

  // The end of a chunk's rows.
  int64_t row_end(const Gather& gather, int64_t chunk) const {
    return std::min((chunk + 1) * chunk_rows_, gather.rows);
  }

  int64_t chunk_rows_;
  int64_t ring_;  // how many chunks there is room for
  std::shared_ptr<int2[]> pairs_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<uint8_t[]>
      aside_;  // for chunks that the caller packs, one for each copy on its way
  std::vector<std::atomic<uint64_t>> packed_;  // the launch for which each chunk was packed last
  uint64_t launch_ = 0;
  std::array<std::shared_ptr<CUevent_st>, kInFlight> sent_{new_event(), new_event()};
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> arrived_{0};  // chunks whose room in the ring is free again
  std::vector<int> cpus_;
  int64_t last_rows_;  // of a launch: the cores' own caches may still hold them at its end
  Workers workers_;    // the last member, so that its threads end first
};
