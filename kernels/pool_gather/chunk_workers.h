// Threads that divide the rows of a gather among themselves, chunk by chunk.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "../common/memory.h"
#include "../common/workers.h"
#include "operator.h"
#include "packing.h"

#ifndef MOST_WORKERS  // a flag in study.yaml
#define MOST_WORKERS 64
#endif

// Number of chunks for `rows` rows.
inline int64_t chunk_count(int64_t rows, int64_t chunk_rows) {
  return (rows + chunk_rows - 1) / chunk_rows;
}

// The CPUs of chunk workers, out of those that threads may be pinned to.
inline std::vector<int> chunk_worker_cpus(const std::vector<int>& cpus) {
  return worker_cpus(cpus, MOST_WORKERS);
}

class ChunkWorkers {
 public:
  explicit ChunkWorkers(const std::vector<int>& cpus)
      : cpus_(chunk_worker_cpus(cpus)), workers_(cpus_) {}

  const std::vector<int>& cpus() const { return cpus_; }

  // Calls `work(chunk, first row, end of its rows)` for each chunk of `rows` rows, on any of the
  // threads. Returns at once.
  template <class Work>
  void begin(int64_t rows, int64_t chunk_rows, Work work) {
    workers_.finish();
    next_.store(0, std::memory_order_relaxed);
    workers_.start([this, rows, chunk_rows, work] {
      for (;;) {
        const int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
        if (chunk * chunk_rows >= rows) {
          return;
        }
        work(chunk, chunk * chunk_rows, std::min((chunk + 1) * chunk_rows, rows));
      }
    });
  }

  // Waits until all chunks are done.
  void finish() const { workers_.finish(); }

  // Flushes the rows from the CPU's caches, which rarely hold rows of a pool in use.
  void flush(const Gather& gather) {
    const OffCpus off_worker_cpus(cpus_);
    std::vector<int2> pairs(static_cast<size_t>(gather.rows));
    check(
        cudaMemcpy(pairs.data(), gather.pairs, pairs.size() * sizeof(int2), cudaMemcpyDeviceToHost),
        "pairs");
    begin(gather.rows, kFlushChunkRows, [&](int64_t, int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        flush_row<kRowBytes>(source_bytes(gather, pairs[static_cast<size_t>(i)].x));
      }
      _mm_mfence();
    });
    finish();
  }

 private:
  static constexpr int64_t kFlushChunkRows = 64;

  std::atomic<int64_t> next_{0};  // chunk
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
