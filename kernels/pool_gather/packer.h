// Threads pack scattered rows into a ring of pinned staging memory; the copy engine moves the
// packed rows. The caller packs the chunks of late workers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "../common/memory.h"
#include "../common/packed_rows.h"
#include "chunk_workers.h"
#include "operator.h"

#ifndef PACKED_IN_CORE  // a flag in study.yaml
#define PACKED_IN_CORE (1 << 20)
#endif
#ifndef PATIENCE_US  // a flag in study.yaml
#define PATIENCE_US 100
#endif

constexpr int64_t kChunks = 1024;  // of a launch, within the limits of a chunk
constexpr int64_t kMinChunkRows = 16;
constexpr int64_t kMaxChunkRows = 1024;
// Bytes of packed rows that a core's private caches may hold, beside the rows they are copied from.
constexpr int64_t kPackedInCore = PACKED_IN_CORE;
constexpr size_t kCopiesInFlight = 2;  // so that the copy engine always has one
// A copy moves at most one part of the ring, so that slots become free before the ring is full.
constexpr int64_t kRingParts = 4;

#ifdef PAST_CACHES  // a flag in study.yaml
constexpr bool kPastCaches = true;
constexpr int64_t kRingBytes = std::numeric_limits<int64_t>::max();  // all rows fit
#else
// Fits the shared cache of a server's CPU. There, reads of the copy engine take no bandwidth of
// host memory. Rings that fit the cores' private caches were slower in trials.
constexpr bool kPastCaches = false;
constexpr int64_t kRingBytes = 32 << 20;
#endif

// Longest wait for the next chunk to send: about twice the time to pack a chunk of a large launch,
// and longer than a small launch. A worker may lose its CPU for milliseconds, which a guest of a
// hypervisor cannot prevent.
constexpr std::chrono::microseconds kPatience{PATIENCE_US};

class Packer {
 public:
  // For launches of at most `rows` rows.
  Packer(int64_t rows, const std::vector<int>& cpus)
      : chunk_rows_(std::clamp(rows / kChunks / kGroup * kGroup, kMinChunkRows, kMaxChunkRows)),
        ring_chunks_(std::min(chunk_count_of(rows), kRingBytes / (chunk_rows_ * kRowBytes))),
        pairs_(pinned<int2>(static_cast<size_t>(rows))),
        staging_(pinned<uint8_t>(static_cast<size_t>(ring_chunks_ * chunk_rows_ * kRowBytes))),
        caller_staging_(
            pinned<uint8_t>(kCopiesInFlight * static_cast<size_t>(chunk_rows_ * kRowBytes))),
        packed_(static_cast<size_t>(chunk_count_of(rows))),
        last_rows_(static_cast<int64_t>(chunk_worker_cpus(cpus).size()) * kPackedInCore /
                   kRowBytes),
        workers_(cpus) {}

  // Enqueues the copy of the pairs to the host. pack() must follow, with the same gather.
  void fetch(const Gather& gather, cudaStream_t stream) {
    workers_.finish();  // a late worker may still be reading the previous launch's pairs
    check(cudaMemcpyAsync(pairs_.get(), gather.pairs, gather.rows * sizeof(int2),
                          cudaMemcpyDeviceToHost, stream),
          "pairs");
  }

  // Packs the rows, and enqueues their copies as they are packed. Returns when all are enqueued.
  void pack(const Gather& gather, cudaStream_t stream) {
    const OffCpus off_worker_cpus(workers_.cpus());
    // With the pairs, all copies of the previous launch have arrived: the ring is free.
    check(cudaStreamSynchronize(stream), "pairs");
    ++launch_id_;
    arrived_.store(0, std::memory_order_relaxed);
    workers_.begin(
        gather.rows, chunk_rows_, [this, gather](int64_t chunk, int64_t first, int64_t end) {
          while (chunk - ring_chunks_ >= arrived_.load(std::memory_order_acquire) ||
                 has_late_worker(chunk)) {
            _mm_pause();
          }
          pack_chunk(gather, ring_slot(chunk), first, end);
          packed_[static_cast<size_t>(chunk)].store(launch_id_, std::memory_order_release);
        });
    try {
      send_chunks(gather, stream);
    } catch (...) {
      // No thread waits for a slot any more, so all of them end before their memory is freed.
      arrived_.store(chunk_count_of(gather.rows), std::memory_order_release);
      workers_.finish();
      throw;
    }
  }

  // Flushes the rows from the CPU's caches.
  void flush(const Gather& gather) { workers_.flush(gather); }

 private:
  int64_t chunk_count_of(int64_t rows) const { return chunk_count(rows, chunk_rows_); }

  // End of a chunk's rows.
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
      // Earlier rows are displaced by later ones, which takes less time.
      const bool is_last = end > gather.rows - last_rows_;
      const auto demote = [&](int64_t row) {
        if (is_last && row >= 0) {
          demote_row(staging + row * kRowBytes);
        }
      };
      pack_into_caches(staging, 0, rows, row_at, [&](int64_t row) {
        demote(row - 1);  // its last line is complete now
      });
      demote(rows - 1);
    }
  }

  // Ring slot of a chunk.
  uint8_t* ring_slot(int64_t chunk) const {
    return staging_.get() + chunk % ring_chunks_ * chunk_rows_ * kRowBytes;
  }

  bool is_packed(int64_t chunk) const {
    return packed_[static_cast<size_t>(chunk)].load(std::memory_order_acquire) == launch_id_;
  }

  // Whether a late worker still owns the chunk's ring slot.
  bool has_late_worker(int64_t chunk) const {
    return chunk >= ring_chunks_ && !is_packed(chunk - ring_chunks_);
  }

  // Waits for a chunk whose ring slot is free. False if its worker, or a late worker that still
  // owns the slot, takes too long.
  bool is_packed_in_time(int64_t chunk) const {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!is_packed(chunk)) {
      if (has_late_worker(chunk) || std::chrono::steady_clock::now() > until) {
        return false;
      }
      _mm_pause();
    }
    return true;
  }

  // The copy engine pauses between two copies, so a copy takes all chunks that were packed while
  // others were in flight. While packing is faster than copying, copies grow up to a part of the
  // ring.
  void send_chunks(const Gather& gather, cudaStream_t stream) {
    std::array<int64_t, kCopiesInFlight> ends{};  // of the chunks of each copy in flight
    size_t oldest = 0;
    const auto await_oldest = [&] {
      check(cudaEventSynchronize(sent_[oldest % kCopiesInFlight].get()), "packed rows");
      arrived_.store(ends[oldest % kCopiesInFlight], std::memory_order_release);
      ++oldest;
    };
    int64_t first = 0;
    for (size_t copy = 0; first < chunk_count_of(gather.rows); ++copy) {
      if (copy - oldest == kCopiesInFlight) {
        await_oldest();
      }
      while (first - ring_chunks_ >= arrived_.load(std::memory_order_relaxed)) {
        await_oldest();  // its ring slot is not free yet
      }
      const size_t turn = copy % kCopiesInFlight;
      const uint8_t* packed = ring_slot(first);
      int64_t end = first + 1;
      if (is_packed_in_time(first)) {
        const int64_t ring_end = (first / ring_chunks_ + 1) * ring_chunks_;
        const int64_t part_end = first + (ring_chunks_ + kRingParts - 1) / kRingParts;
        while (end < std::min({chunk_count_of(gather.rows), ring_end, part_end}) &&
               is_packed(end)) {
          ++end;
        }
      } else {
        uint8_t* slot = caller_staging_.get() + turn * static_cast<size_t>(chunk_rows_ * kRowBytes);
        pack_chunk(gather, slot, first * chunk_rows_, row_end(gather, first));
        packed = slot;
      }
      send_rows(gather, packed, first * chunk_rows_, row_end(gather, end - 1), stream);
      check(cudaEventRecord(sent_[turn].get(), stream), "packed rows");
      ends[turn] = end;
      first = end;
    }
  }

  // Enqueues copies of rows [first, end), which lie packed at `packed`: one copy per run of
  // consecutive destinations.
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
  int64_t ring_chunks_;
  std::shared_ptr<int2[]> pairs_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<uint8_t[]> caller_staging_;  // chunks that the caller packs, a slot per copy
  std::vector<std::atomic<uint64_t>> packed_;  // latest launch that each chunk was packed for
  uint64_t launch_id_ = 0;
  std::array<std::shared_ptr<CUevent_st>, kCopiesInFlight> sent_{new_event(), new_event()};
  std::atomic<int64_t> arrived_{0};  // chunks of the launch that have left the ring
  int64_t last_rows_;                // of a launch, that private caches may still hold at its end
  ChunkWorkers workers_;             // the last member, so that its threads end first
};
