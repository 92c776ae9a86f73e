// A kernel asks for rows: it writes to host memory which ones, and threads pack them to where it
// reads them. No copy is enqueued, and the caller waits at most for the launch before.
#pragma once

#include <algorithm>
#include <array>
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
      : staging_bytes_(std::min(kRingBytes, (rows + kLargestPiece) * kRowBytes)),
        asked_(zeroed<uint64_t>(rows)),
        staging_(page_locked<uint8_t>(static_cast<size_t>(staging_bytes_))),
        packed_(zeroed<Done>(chunk_count(rows, kFewestRows))),
        read_(zeroed<Done>(chunk_count(rows, kFewestRows))),
        crew_(cpus) {}
  RequestPacker(const RequestPacker&) = delete;
  RequestPacker& operator=(const RequestPacker&) = delete;
  ~RequestPacker() {
    cudaEventSynchronize(launched_.get());
    give_up();  // if the kernel has failed
  }

  // Waits until all rows of the launch before are packed, so its stream must be able to get there.
  // Then has threads pack what a kernel asks for, which `enqueue(requests)` launches, and returns.
  // One launch follows the other on the GPU. An error of CUDA's that nobody has asked for yet would
  // be taken for one of this launch.
  template <class Enqueue>
  void launch(const Gather& gather, cudaStream_t stream, Enqueue enqueue) {
    finish();
    ++launch_;
    divide(gather.rows);
    crew_.begin(threads(), 1, [this, gather](int64_t, int64_t, int64_t) {
      answer(gather);
      left_.fetch_sub(1, std::memory_order_release);
    });
    enqueue(Requests{asked_.get(), staging_.get(), packed_.get(), read_.get(), piece_rows_, pieces_,
                     ring_, launch_});
    const OffCpus aside(crew_.cpus());  // a caller on one of them would hold up its thread
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
  static constexpr int64_t kPieces = 1024;  // of a launch, unless they get too small or too large
  static constexpr int64_t kFewestRows = 16;
  static constexpr int64_t kLargestPiece = 64;
  // A thread takes so small a part of its share of what is left, and so many rows at most.
  static constexpr int64_t kParts = 2;
  static constexpr int64_t kMostRows = 256;
  static constexpr size_t kOnTheirWay = 8;  // rows that a thread has asked its caches for
  // Meant for the shared cache of a server's CPU, where the kernel reads them.
  static constexpr int64_t kRingBytes = 32 << 20;

  template <class T>
  static std::shared_ptr<T[]> zeroed(int64_t count) {
    const auto made = page_locked<T>(static_cast<size_t>(count));
    std::fill_n(made.get(), count, T{});
    return made;
  }

  void divide(int64_t rows) {
    rows_ = rows;
    piece_rows_ = std::clamp(rows / kPieces, kFewestRows, kLargestPiece);
    pieces_ = chunk_count(rows, piece_rows_);
    ring_ = staging_bytes_ / (piece_rows_ * kRowBytes);
    next_.store(0, std::memory_order_relaxed);
    left_.store(threads(), std::memory_order_relaxed);
  }

  int64_t threads() const { return static_cast<int64_t>(crew_.cpus().size()); }

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

  // Waits until a row is ready. False if that was given up.
  bool await(int64_t row) const {
    while (!is_ready(row)) {
      if (gave_up_.load(std::memory_order_relaxed)) {
        return false;
      }
      _mm_pause();
    }
    return true;
  }

  // The rows that a thread has taken and not asked its caches for yet.
  struct Taken {
    int64_t row = 0;
    int64_t end = 0;
  };

  // What a thread packs next, empty if all is taken: half of its share of what is left, in whole
  // pieces, so that threads that differ in speed end at about the same time.
  Taken take() {
    for (int64_t first = next_.load(std::memory_order_relaxed); first < pieces_;) {
      const int64_t most = std::max(kMostRows / piece_rows_, int64_t{1});
      const int64_t count = std::clamp((pieces_ - first) / (kParts * threads()), int64_t{1}, most);
      if (next_.compare_exchange_weak(first, first + count, std::memory_order_relaxed)) {
        return {first * piece_rows_, std::min((first + count) * piece_rows_, rows_)};
      }
    }
    return {};
  }

  // Whether the kernel has asked for the row, and has read what was in its room before.
  bool is_ready(int64_t row) const {
    const int64_t before = row / piece_rows_ - ring_;  // the piece that was there
    return __atomic_load_n(&asked_[row], __ATOMIC_ACQUIRE) >> 32 == launch_ &&
           (before < 0 || __atomic_load_n(&read_[before].launch, __ATOMIC_ACQUIRE) == launch_);
  }

  // Tells the kernel of a piece whose last row is packed.
  void tell(int64_t row) const {
    if ((row + 1) % piece_rows_ == 0 || row + 1 == rows_) {
      __atomic_store_n(&packed_[row / piece_rows_].launch, launch_, __ATOMIC_RELEASE);
    }
  }

  // Packs what the thread can take, until all is taken. The next rows are asked for while one is
  // copied, those of the next piece, too: else each piece would begin with a wait for all of them.
  void answer(const Gather& gather) {
    struct Row {
      const uint8_t* source;
      uint8_t* packed;
      int64_t row;
    };
    std::array<Row, kOnTheirWay> rows;
    size_t begun = 0;
    size_t done = 0;  // of those
    Taken taken = take();
    while (taken.row < taken.end || done < begun) {
      // While it waits, all that it has begun must be packed: others may wait for that.
      const bool has_next =
          taken.row < taken.end && (done < begun ? is_ready(taken.row) : await(taken.row));
      if (!has_next && done == begun) {
        return;  // that was given up
      }
      Row next{nullptr, nullptr, taken.row};
      if (has_next) {
        next.source = source_bytes(gather, static_cast<uint32_t>(asked_[taken.row]));
        next.packed = staging_.get() + taken.row % (ring_ * piece_rows_) * kRowBytes;
      }
      const Later later{next.source, next.packed};
      if (has_next && begun - done < kOnTheirWay) {
        ask_for_row(later);
      } else {
        const Row& oldest = rows[done++ % kOnTheirWay];
        copy_row(oldest.packed, oldest.source, later);
        tell(oldest.row);
      }
      if (has_next) {
        rows[begun++ % kOnTheirWay] = next;
        if (++taken.row == taken.end) {
          taken = take();
        }
      }
    }
  }

  int64_t staging_bytes_;
  std::shared_ptr<uint64_t[]> asked_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<Done[]> packed_;
  std::shared_ptr<Done[]> read_;
  std::shared_ptr<CUevent_st> launched_ = new_event();
  uint32_t launch_ = 0;
  int64_t rows_ = 0;  // of the launch, and so on
  int64_t piece_rows_ = 0;
  int64_t pieces_ = 0;
  int64_t ring_ = 0;                                  // pieces
  alignas(kCacheLine) std::atomic<int64_t> next_{0};  // piece
  alignas(kCacheLine) std::atomic<int64_t> left_{0};  // calls of answer() that are not done
  std::atomic<bool> gave_up_{false};
  Crew crew_;  // the last member, so that its threads end first
};
