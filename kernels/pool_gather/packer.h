// Threads pack scattered rows into page-locked staging memory; the copy engine moves what is
// packed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "operator.h"
#include "scratch.h"
#include "workers.h"

#ifndef MOST_WORKERS  // a flag in study.yaml
#define MOST_WORKERS 64
#endif

static_assert(kSlotBytes == kRowBytes, "only whole rows are packed");

constexpr int64_t kChunks = 256;  // of a launch, unless they get too small or too large
constexpr int64_t kFewestRows = 16;
constexpr int64_t kMostRows = 1024;
constexpr int64_t kAhead = 4;  // rows that a thread prefetches
constexpr int kCacheLine = 64;
constexpr int64_t kGroup = 4;  // rows that are written at once; 4 of 656 bytes are 41 whole lines

// The CPUs of the workers: the last seven of eight. The others are for the caller, the driver and
// whatever else runs. A worker that has to give way stalls the launch for a tick of the scheduler,
// which takes as long as the launch.
inline std::vector<int> worker_cpus(const std::vector<int>& cpus) {
  if (cpus.size() < 2) {
    throw std::invalid_argument("cpus: expected at least 2, got " + std::to_string(cpus.size()));
  }
  const size_t others = (cpus.size() + 7) / 8;
  const size_t count = std::min<size_t>(cpus.size() - others, MOST_WORKERS);
  return {cpus.end() - static_cast<std::ptrdiff_t>(count), cpus.end()};
}

// Keeps the calling thread off these CPUs while it lives. A caller that waits on the CPU of a
// worker would keep it from working until the scheduler moves one of them.
class OffCpus {
 public:
  explicit OffCpus(const std::vector<int>& cpus) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t others = before_;
    for (const int cpu : cpus) {
      CPU_CLR(cpu, &others);
    }
    if (CPU_COUNT(&others) > 0) {
      pthread_setaffinity_np(pthread_self(), sizeof others, &others);
    }
  }
  OffCpus(const OffCpus&) = delete;
  OffCpus& operator=(const OffCpus&) = delete;
  ~OffCpus() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

inline void prefetch_row(const uint8_t* row) {
  for (int byte = 0; byte < kRowBytes; byte += kCacheLine) {
    _mm_prefetch(reinterpret_cast<const char*>(row + byte), _MM_HINT_NTA);
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
      : chunk_rows_(std::clamp(rows / kChunks, kFewestRows, kMostRows)),
        pairs_(page_locked<int2>(static_cast<size_t>(rows))),
        staging_(page_locked<uint8_t>(static_cast<size_t>(rows * kRowBytes))),
        packed_(static_cast<size_t>((rows + chunk_rows_ - 1) / chunk_rows_)),
        cpus_(worker_cpus(cpus)),
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
      pack_rows(gather, first, end);
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

  void pack_rows(const Gather& gather, int64_t first, int64_t end) {
    alignas(kCacheLine) __m128i near[kGroup * kRowVectors];
    for (int64_t i = first; i < std::min(first + kAhead, end); ++i) {
      prefetch_row(source_bytes(gather, pairs_[i].x));
    }
    for (int64_t i = first; i < end; ++i) {
      if (i + kAhead < end) {
        prefetch_row(source_bytes(gather, pairs_[i + kAhead].x));
      }
      const auto* from = reinterpret_cast<const __m128i*>(source_bytes(gather, pairs_[i].x));
      const int64_t held = (i - first) % kGroup;
      __m128i* to = near + held * kRowVectors;
      for (int vector = 0; vector < kRowVectors; ++vector) {
        _mm_store_si128(to + vector, _mm_loadu_si128(from + vector));
      }
      if (held + 1 == kGroup || i + 1 == end) {
        write_past_caches(near, i - held, i + 1);
      }
    }
    _mm_sfence();  // streaming stores are not ordered with the release of the chunk
  }

  // Writes packed rows [first, end) to staging memory, where nobody reads them but the copy engine.
  // Their lines are written whole: loads that wait for memory would have half of one written early.
  void write_past_caches(const __m128i* near, int64_t first, int64_t end) {
    auto* to = reinterpret_cast<__m128i*>(staging_.get() + first * kRowBytes);
    for (int64_t vector = 0; vector < (end - first) * kRowVectors; ++vector) {
      _mm_stream_si128(to + vector, near[vector]);
    }
  }

  bool is_packed(int64_t chunk) const {
    return packed_[static_cast<size_t>(chunk)].load(std::memory_order_acquire) == launch_;
  }

  void send_chunks(const Gather& gather, cudaStream_t stream) {
    int64_t first = 0;
    while (first < chunks(gather)) {
      while (!is_packed(first)) {
        _mm_pause();
      }
      int64_t end = first + 1;
      while (end < chunks(gather) && is_packed(end)) {
        ++end;
      }
      send_rows(gather, first * chunk_rows_, std::min(end * chunk_rows_, gather.rows), stream);
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
  std::atomic<int64_t> next_{0};
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
