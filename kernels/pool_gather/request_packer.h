// Packing on request: a kernel writes to host memory which rows it needs, and threads pack them for
// it. No copy is enqueued; the caller waits at most for the previous launch.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "../common/launch_flag.h"
#include "../common/memory.h"
#include "chunk_workers.h"
#include "operator.h"

// Pinned host memory by which a kernel requests rows. They are packed in pieces.
struct Requests {
  uint64_t* rows;            // [rows], written by the kernel: launch number, then source row
  const uint8_t* staging;    // [ring_pieces][piece_rows] rows
  const LaunchFlag* packed;  // [pieces]
  LaunchFlag* read;          // [pieces], written by the kernel for all but the last `ring_pieces`
  int64_t piece_rows;
  int64_t pieces;
  int64_t ring_pieces;  // slots for pieces in staging memory
  uint32_t launch_id;
};

class RequestPacker {
 public:
  // For launches of at most `rows` rows.
  RequestPacker(int64_t rows, const std::vector<int>& cpus)
      : staging_bytes_(std::min(kRingBytes, (rows + kMaxPieceRows) * kRowBytes)),
        requests_(zeroed<uint64_t>(rows)),
        staging_(pinned<uint8_t>(static_cast<size_t>(staging_bytes_))),
        packed_(zeroed<LaunchFlag>(chunk_count(rows, kMinPieceRows))),
        read_(zeroed<LaunchFlag>(chunk_count(rows, kMinPieceRows))),
        workers_(cpus) {}
  RequestPacker(const RequestPacker&) = delete;
  RequestPacker& operator=(const RequestPacker&) = delete;
  ~RequestPacker() {
    cudaEventSynchronize(launched_.get());
    give_up();  // the kernel may have failed
  }

  // Waits until all rows of the previous launch are packed, so its kernel must be able to run. Then
  // lets threads pack the rows that a kernel requests, which `enqueue(requests)` launches, and
  // returns. Launches must not overlap on the GPU. A pending CUDA error counts as one of this
  // launch.
  template <class Enqueue>
  void launch(const Gather& gather, cudaStream_t stream, Enqueue enqueue) {
    finish();
    ++launch_id_;
    divide(gather.rows);
    workers_.begin(threads(), 1, [this, gather](int64_t, int64_t, int64_t) {
      answer(gather);
      calls_left_.fetch_sub(1, std::memory_order_release);
    });
    enqueue(Requests{requests_.get(), staging_.get(), packed_.get(), read_.get(), piece_rows_,
                     pieces_, ring_pieces_, launch_id_});
    const OffCpus off_worker_cpus(workers_.cpus());
    if (cudaPeekAtLastError() != cudaSuccess) {
      give_up();
      return;
    }
    check(cudaEventRecord(launched_.get(), stream), "launched");
  }

  // Flushes the rows from the CPU's caches.
  void flush(const Gather& gather) {
    finish();
    workers_.flush(gather);
  }

 private:
  static constexpr int64_t kPieces = 1024;  // of a launch, within the limits of a piece
  static constexpr int64_t kMinPieceRows = 16;
  static constexpr int64_t kMaxPieceRows = 64;
  // A thread takes half of its share of the remaining rows, and at most kMaxTakenRows.
  static constexpr int64_t kShareParts = 2;
  static constexpr int64_t kMaxTakenRows = 256;
  static constexpr size_t kRowsInFlight = 8;  // prefetched by a thread and not copied yet
  // Fits the shared cache of a server's CPU, where the kernel reads the rows.
  static constexpr int64_t kRingBytes = 32 << 20;

  void divide(int64_t rows) {
    rows_ = rows;
    piece_rows_ = std::clamp(rows / kPieces, kMinPieceRows, kMaxPieceRows);
    pieces_ = chunk_count(rows, piece_rows_);
    ring_pieces_ = staging_bytes_ / (piece_rows_ * kRowBytes);
    next_.store(0, std::memory_order_relaxed);
    calls_left_.store(threads(), std::memory_order_relaxed);
  }

  int64_t threads() const { return static_cast<int64_t>(workers_.cpus().size()); }

  // Waits until all requests of the previous launch are answered. Throws if its kernel has failed.
  void finish() {
    while (calls_left_.load(std::memory_order_acquire) != 0) {
      const cudaError_t status = cudaEventQuery(launched_.get());
      if (status != cudaSuccess && status != cudaErrorNotReady) {
        give_up();
        check(status, "the launch before");
      }
    }
    workers_.finish();
  }

  // Ends the waiting of all threads.
  void give_up() {
    gave_up_.store(true, std::memory_order_relaxed);
    workers_.finish();
    gave_up_.store(false, std::memory_order_relaxed);
    calls_left_.store(0, std::memory_order_relaxed);
  }

  // Waits until a row is ready. False if the launch was given up.
  bool await(int64_t row) const {
    while (!is_ready(row)) {
      if (gave_up_.load(std::memory_order_relaxed)) {
        return false;
      }
      _mm_pause();
    }
    return true;
  }

  // Rows that a thread has taken and not prefetched yet.
  struct Taken {
    int64_t row = 0;
    int64_t end = 0;
  };

  // Takes the next rows for a thread, in whole pieces: a part of its share of the remaining rows,
  // so that threads of different speed end at about the same time. Empty if all rows are taken.
  Taken take() {
    for (int64_t first = next_.load(std::memory_order_relaxed); first < pieces_;) {
      const int64_t max_pieces = std::max(kMaxTakenRows / piece_rows_, int64_t{1});
      const int64_t count =
          std::clamp((pieces_ - first) / (kShareParts * threads()), int64_t{1}, max_pieces);
      if (next_.compare_exchange_weak(first, first + count, std::memory_order_relaxed)) {
        return {first * piece_rows_, std::min((first + count) * piece_rows_, rows_)};
      }
    }
    return {};
  }

  // Whether the kernel has requested the row and has read the previous piece in its ring slot.
  bool is_ready(int64_t row) const {
    const int64_t before = row / piece_rows_ - ring_pieces_;  // the previous piece in its slot
    return __atomic_load_n(&requests_[row], __ATOMIC_ACQUIRE) >> 32 == launch_id_ &&
           (before < 0 ||
            __atomic_load_n(&read_[before].launch_id, __ATOMIC_ACQUIRE) == launch_id_);
  }

  // Announces a piece to the kernel if `row` is its last one.
  void announce(int64_t row) const {
    if ((row + 1) % piece_rows_ == 0 || row + 1 == rows_) {
      __atomic_store_n(&packed_[row / piece_rows_].launch_id, launch_id_, __ATOMIC_RELEASE);
    }
  }

  // Packs rows until all are taken. While a row is copied, later ones are prefetched, those of the
  // next piece, too: otherwise each piece would begin with a wait.
  void answer(const Gather& gather) {
    struct Row {
      const uint8_t* source;
      uint8_t* packed;
      int64_t row;
    };
    std::array<Row, kRowsInFlight> rows;
    size_t begun = 0;
    size_t done = 0;
    Taken taken = take();
    while (taken.row < taken.end || done < begun) {
      // A thread must not wait with rows begun: others may wait for these.
      const bool has_next =
          taken.row < taken.end && (done < begun ? is_ready(taken.row) : await(taken.row));
      if (!has_next && done == begun) {
        return;  // the launch was given up
      }
      Row next{nullptr, nullptr, taken.row};
      if (has_next) {
        next.source = source_bytes(gather, static_cast<uint32_t>(requests_[taken.row]));
        next.packed = staging_.get() + taken.row % (ring_pieces_ * piece_rows_) * kRowBytes;
      }
      const RowToPack later{next.source, next.packed};
      if (has_next && begun - done < kRowsInFlight) {
        prefetch_row_to_pack<kRowBytes>(later);
      } else {
        const Row& oldest = rows[done++ % kRowsInFlight];
        copy_row({oldest.source, oldest.packed}, later);
        announce(oldest.row);
      }
      if (has_next) {
        rows[begun++ % kRowsInFlight] = next;
        if (++taken.row == taken.end) {
          taken = take();
        }
      }
    }
  }

  int64_t staging_bytes_;
  std::shared_ptr<uint64_t[]> requests_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<LaunchFlag[]> packed_;
  std::shared_ptr<LaunchFlag[]> read_;
  std::shared_ptr<CUevent_st> launched_ = new_event();
  uint32_t launch_id_ = 0;
  int64_t rows_ = 0;  // of the launch, as all that follow
  int64_t piece_rows_ = 0;
  int64_t pieces_ = 0;
  int64_t ring_pieces_ = 0;
  alignas(kCacheLine) std::atomic<int64_t> next_{0};        // piece
  alignas(kCacheLine) std::atomic<int64_t> calls_left_{0};  // of answer() in the launch
  std::atomic<bool> gave_up_{false};
  ChunkWorkers workers_;  // the last member, so that its threads end first
};
