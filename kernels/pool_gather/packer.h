// Threads pack scattered rows into page-locked staging memory; the copy engine moves what is
// packed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "operator.h"
#include "packed_rows.h"
#include "scratch.h"
#include "workers.h"

#ifndef MOST_WORKERS  // a flag in study.yaml
#define MOST_WORKERS 64
#endif

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kChunks = 512;  // of a launch, unless they get too small or too large
constexpr int64_t kFewestRows = 16;
constexpr int64_t kMostRows = 1024;
constexpr size_t kInFlight = 2;  // copies of packed rows, so that the copy engine always has one

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
        pairs_(page_locked<int2>(static_cast<size_t>(rows))),
        staging_(page_locked<uint8_t>(static_cast<size_t>(rows * kRowBytes))),
        packed_(static_cast<size_t>((rows + chunk_rows_ - 1) / chunk_rows_)),
        cpus_(worker_cpus(cpus, MOST_WORKERS)),
        workers_(cpus_) {}

  // Enqueues the copy of the pairs to the host. pack() has to follow, with the same gather.
  void fetch(const Gather& gather, cudaStream_t stream) {
    check(cudaMemcpyAsync(pairs_.get(), gather.pairs, gather.rows * sizeof(int2),
                          cudaMemcpyDeviceToHost, stream),
          "pairs");
  }

  // Packs the rows, and enqueues their copies as they are packed. Returns when all are enqueued.
  void pack(const Gather& gather, cudaStream_t stream) {
    const OffCpus aside(cpus_);
    // With the pairs, all copies of the launch before have arrived: its staging memory is free.
    check(cudaStreamSynchronize(stream), "pairs");
    ++launch_;
    // Where sending throws, they finish what they do before anything they use is freed.
    begin(gather, [this, gather](int64_t chunk, int64_t first, int64_t end) {
      pack_rows<kRowBytes>(staging_.get(), first, end, kRowBytes,
                           [&](int64_t i) { return source_bytes(gather, pairs_[i].x); });
      packed_[static_cast<size_t>(chunk)].store(launch_, std::memory_order_release);
    });
    send_chunks(gather, stream);
    workers_.finish();
  }

  // Flushes the rows from the CPU's caches, where rows of a pool in use mostly are not.
  void flush(const Gather& gather, cudaStream_t stream) {
    const OffCpus aside(cpus_);
    fetch(gather, stream);
    check(cudaStreamSynchronize(stream), "pairs");
    begin(gather, [this, gather](int64_t, int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        flush_row(source_bytes(gather, pairs_[i].x));
      }
      _mm_mfence();
    });
    workers_.finish();
  }

 private:
  int64_t chunks(const Gather& gather) const {
    return (gather.rows + chunk_rows_ - 1) / chunk_rows_;
  }

  // Has each thread do the next chunk, until there is none: `work(chunk, its first row, its end)`.
  template <typename Work>
  void begin(const Gather& gather, Work work) {
    next_.store(0, std::memory_order_relaxed);
    workers_.start([this, rows = gather.rows, count = chunks(gather), work] {
      for (;;) {
        const int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= count) {
          return;
        }
        const int64_t first = chunk * chunk_rows_;
        work(chunk, first, std::min(first + chunk_rows_, rows));
      }
    });
  }

  bool is_packed(int64_t chunk) const {
    return packed_[static_cast<size_t>(chunk)].load(std::memory_order_acquire) == launch_;
  }

  // Between two copies the copy engine pauses, so they should be few. What is packed while some are
  // on their way is sent at once: copies get longer for as long as packing is the faster of the
  // two.
  void send_chunks(const Gather& gather, cudaStream_t stream) {
    int64_t first = 0;
    for (size_t copy = 0; first < chunks(gather); ++copy) {
      const cudaEvent_t sent = sent_[copy % kInFlight].get();
      check(cudaEventSynchronize(sent), "packed rows");
      while (!is_packed(first)) {
        _mm_pause();
      }
      int64_t end = first + 1;
      while (end < chunks(gather) && is_packed(end)) {
        ++end;
      }
      send_rows(gather, first * chunk_rows_, std::min(end * chunk_rows_, gather.rows), stream);
      check(cudaEventRecord(sent, stream), "packed rows");
      first = end;
    }
  }

  // One copy for all rows whose destinations follow each other.
  void send_rows(const Gather& gather, int64_t first, int64_t end, cudaStream_t stream) {
    while (first < end) {
      int64_t next = first + 1;
      while (next < end && pairs_[next].y == pairs_[next - 1].y + 1) {
        ++next;
      }
      check(cudaMemcpyAsync(destination_bytes(gather, pairs_[first].y),
                            staging_.get() + first * kRowBytes, (next - first) * kRowBytes,
                            cudaMemcpyHostToDevice, stream),
            "packed rows");
      first = next;
    }
  }

  int64_t chunk_rows_;
  std::shared_ptr<int2[]> pairs_;
  std::shared_ptr<uint8_t[]> staging_;
  std::vector<std::atomic<uint64_t>> packed_;  // the launch for which each chunk was packed last
  uint64_t launch_ = 0;
  std::array<std::shared_ptr<CUevent_st>, kInFlight> sent_{new_event(), new_event()};
  std::atomic<int64_t> next_{0};
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
