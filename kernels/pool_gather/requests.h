// A kernel asks for rows: it writes to host memory which ones, and threads pack them to where it
// reads them. No copy is enqueued, and the caller does not wait.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "crew.h"
#include "operator.h"
#include "scratch.h"

// The launch for which one side has done something, on a line of its own: a line that both sides
// ask for moves back and forth. What says for which launch it is need not be reset.
struct alignas(kCacheLine) Done {
  uint32_t launch;
};

// What a kernel needs to ask, all of it in page-locked host memory. Rows are packed in pieces.
struct Requests {
  uint64_t* asked;         // [rows], written by the kernel: the launch, then the source row
  const uint8_t* staging;  // [ring][piece_rows] rows
  const Done* packed;      // [pieces]
  Done* read;              // [pieces], written by the kernel for all but the last `ring`
  int64_t piece_rows;
  int64_t pieces;
  int64_t ring;  // how many pieces there is room for
  uint32_t launch;
};

class RequestPacker {
 public:
  // For launches of at most `rows` rows.
  RequestPacker(int64_t rows, const std::vector<int>& cpus)
      : staging_bytes_(std::min(kRingBytes, (rows + kMostRows) * kRowBytes)),
        asked_(zeroed<uint64_t>(rows)),
        staging_(page_locked<uint8_t>(static_cast<size_t>(staging_bytes_))),
        packed_(zeroed<Done>(most_pieces(rows, cpus))),
        read_(zeroed<Done>(most_pieces(rows, cpus))),
        crew_(cpus) {}
  RequestPacker(const RequestPacker&) = delete;
  RequestPacker& operator=(const RequestPacker&) = delete;
  ~RequestPacker() {
    cudaEventSynchronize(launched_.get());
    give_up();  // if the kernel has failed
  }

  // Has threads pack what a kernel asks for, which `enqueue(requests)` launches. Returns at once.
  // One launch follows the other on the GPU.
  template <class Enqueue>
  void launch(const Gather& gather, cudaStream_t stream, Enqueue enqueue) {
    const OffCpus aside(crew_.cpus());
    finish();
    ++launch_;
    divide(gather.rows);
    crew_.begin(gather.rows, chunk_rows_, [this, gather](int64_t, int64_t first, int64_t end) {
      answer(gather, first, end);
    });
    enqueue(Requests{asked_.get(), staging_.get(), packed_.get(), read_.get(), piece_rows_,
                     chunk_count(gather.rows, piece_rows_), ring_, launch_});
    if (cudaPeekAtLastError() != cudaSuccess) {
      give_up();
      return;
    }
    check(cudaEventRecord(launched_.get(), stream), "launched");
  }

  // Flushes the rows from the CPU's caches.
  void flush(const Gather& gather) {
    finish();
    crew_.flush(gather);
  }

 private:
  // About how many rows a piece has, and at most how many a thread packs at a time.
  static constexpr int64_t kPieces = 1024;  // of a launch, unless they get too small or too large
  static constexpr int64_t kFewestRows = 16;
  static constexpr int64_t kLargestPiece = 64;
  static constexpr int64_t kMostRows = 256;
  // Meant for the shared cache of a server's CPU, where the kernel reads them.
  static constexpr int64_t kRingBytes = 32 << 20;

  template <class T>
  static std::shared_ptr<T[]> zeroed(int64_t count) {
    const auto made = page_locked<T>(static_cast<size_t>(count));
    std::fill_n(made.get(), count, T{});
    return made;
  }

  // A thread has one piece, or pieces of more than half of kFewestRows.
  static int64_t most_pieces(int64_t rows, const std::vector<int>& cpus) {
    return rows / (kFewestRows / 2) + static_cast<int64_t>(crew_cpus(cpus).size());
  }

  // Divides the rows evenly among the threads, and what a thread packs at a time into even pieces.
  void divide(int64_t rows) {
    const auto threads = static_cast<int64_t>(crew_.cpus().size());
    const int64_t share = std::clamp(chunk_count(rows, threads), int64_t{1}, kMostRows);
    const int64_t pieces =
        chunk_count(share, std::clamp(rows / kPieces, kFewestRows, kLargestPiece));
    piece_rows_ = chunk_count(share, pieces);
    chunk_rows_ = pieces * piece_rows_;
    ring_ = staging_bytes_ / (chunk_rows_ * kRowBytes) * pieces;
    left_.store(chunk_count(rows, chunk_rows_), std::memory_order_relaxed);
  }

  // Waits until all that the launch before asked for is packed. If its kernel has failed, that is
  // an error.
  void finish() {
    while (left_.load(std::memory_order_acquire) != 0) {
      const cudaError_t status = cudaEventQuery(launched_.get());
      if (status != cudaSuccess && status != cudaErrorNotReady) {
        give_up();
        check(status, "the launch before");
      }
    }
    crew_.finish();
  }

  // Has the threads wait for nothing more.
  void give_up() {
    gave_up_.store(true, std::memory_order_relaxed);
    crew_.finish();
    gave_up_.store(false, std::memory_order_relaxed);
    left_.store(0, std::memory_order_relaxed);
  }

  // Waits. False if that was given up.
  template <class Ready>
  bool await(const Ready& ready) const {
    while (!ready()) {
      if (gave_up_.load(std::memory_order_relaxed)) {
        return false;
      }
      _mm_pause();
    }
    return true;
  }

  // The source of a row, once the kernel has asked for it; any row if that was given up.
  const uint8_t* source(const Gather& gather, int64_t row) const {
    const auto asked = [&] { return __atomic_load_n(&asked_[row], __ATOMIC_ACQUIRE); };
    const bool is_asked = await([&] { return asked() >> 32 == launch_; });
    return source_bytes(gather, is_asked ? static_cast<uint32_t>(asked()) : 0);
  }

  // Waits until the kernel has read the piece before this one in its room.
  void await_room(int64_t piece) const {
    await([&] {
      return piece < ring_ ||
             __atomic_load_n(&read_[piece - ring_].launch, __ATOMIC_ACQUIRE) == launch_;
    });
  }

  // Packs rows [first, end) as they are asked for, and tells so piece by piece.
  void answer(const Gather& gather, int64_t first, int64_t end) {
    const int64_t first_piece = first / piece_rows_;
    for (int64_t piece = first_piece; piece * piece_rows_ < end; ++piece) {
      await_room(piece);
    }
    uint8_t* room = staging_.get() + first_piece % ring_ * piece_rows_ * kRowBytes;
    const auto row_at = [&](int64_t row) { return source(gather, row); };
    const auto tell = [&](int64_t row) {
      if ((row + 1) % piece_rows_ == 0 || row + 1 == end) {
        __atomic_store_n(&packed_[row / piece_rows_].launch, launch_, __ATOMIC_RELEASE);
      }
    };
    pack_into_caches(room - first * kRowBytes, first, end, row_at, tell);
    left_.fetch_sub(1, std::memory_order_release);
  }

  int64_t staging_bytes_;
  std::shared_ptr<uint64_t[]> asked_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<Done[]> packed_;
  std::shared_ptr<Done[]> read_;
  std::shared_ptr<CUevent_st> launched_ = new_event();
  uint32_t launch_ = 0;
  int64_t piece_rows_ = 0;
  int64_t chunk_rows_ = 0;        // of what a thread packs at a time, whole pieces
  int64_t ring_ = 0;              // pieces
  std::atomic<int64_t> left_{0};  // chunks that are not packed yet
  std::atomic<bool> gave_up_{false};
  Crew crew_;  // the last member, so that its threads end first
};
