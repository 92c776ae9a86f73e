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

#include "crew.h"
#include "operator.h"
#include "packed_rows.h"
#include "scratch.h"

#ifndef PACKED_IN_CORE  // a flag in study.yaml
#define PACKED_IN_CORE (1 << 20)
#endif
#ifndef PATIENCE_US  // a flag in study.yaml
#define PATIENCE_US 100
#endif

constexpr int64_t kChunks = 1024;  // of a launch, unless they get too small or too large
constexpr int64_t kFewestRows = 16;
constexpr int64_t kMostRows = 1024;
// What a core's own cache may hold of packed rows, beside what they are copied from.
constexpr int64_t kPackedInCore = PACKED_IN_CORE;
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
        last_rows_(static_cast<int64_t>(crew_cpus(cpus).size()) * kPackedInCore / kRowBytes),
        crew_(cpus) {}

  // Enqueues the copy of the pairs to the host. pack() has to follow, with the same gather.
  void fetch(const Gather& gather, cudaStream_t stream) {
    crew_.finish();  // who was late may still read the pairs of the launch before
    check(cudaMemcpyAsync(pairs_.get(), gather.pairs, gather.rows * sizeof(int2),
                          cudaMemcpyDeviceToHost, stream),
          "pairs");
  }

  // Packs the rows, and enqueues their copies as they are packed. Returns when all are enqueued.
  void pack(const Gather& gather, cudaStream_t stream) {
    const OffCpus aside(crew_.cpus());
    // With the pairs, all copies of the launch before have arrived: the ring is free.
    check(cudaStreamSynchronize(stream), "pairs");
    ++launch_;
    arrived_.store(0, std::memory_order_relaxed);
    crew_.begin(
        gather.rows, chunk_rows_, [this, gather](int64_t chunk, int64_t first, int64_t end) {
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
      crew_.finish();
      throw;
    }
  }

  // Flushes the rows from the CPU's caches.
  void flush(const Gather& gather) { crew_.flush(gather); }

 private:
  int64_t chunks(int64_t rows) const { return chunk_count(rows, chunk_rows_); }

  // The end of a chunk's rows.
  int64_t row_end(const Gather& gather, int64_t chunk) const {
    return std::min((chunk + 1) * chunk_rows_, gather.rows);
  }

  // Packs rows [first, end) one after the other to `staging`.
  void pack_chunk(const Gather& gather, uint8_t* staging, int64_t first, int64_t end) const {
    const int64_t rows = end - first;
    const auto row_at = [&](int64_t i) { return source_bytes(gather, pairs_[first + i].x); };
    if constexpr (kPastCaches) {
      pack_rows<kRowBytes>(staging, 0, rows, kRowBytes, row_at);
    } else {
      // Other rows leave the core's cache for those that follow, which takes less time.
      const bool last = end > gather.rows - last_rows_;
      const auto demote = [&](int64_t row) {
        if (last && row >= 0) {
          demote_row(staging + row * kRowBytes);
        }
      };
      pack_into_caches(staging, 0, rows, row_at, [&](int64_t row) {
        demote(row - 1);  // whose last line is now written as well
      });
      demote(rows - 1);
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
    while (first < end) {
      int64_t next = first + 1;
      while (next < end && pairs_[next].y == pairs_[next - 1].y + 1) {
        ++next;
      }
      const int64_t bytes = (next - first) * kRowBytes;
      check(cudaMemcpyAsync(destination_bytes(gather, pairs_[first].y), packed, bytes,
                            cudaMemcpyHostToDevice, stream),
            "packed rows");
      packed += bytes;
      first = next;
    }
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
  std::atomic<int64_t> arrived_{0};  // chunks whose room in the ring is free again
  int64_t last_rows_;  // of a launch: the cores' own caches may still hold them at its end
  Crew crew_;          // the last member, so that its threads end first
};
