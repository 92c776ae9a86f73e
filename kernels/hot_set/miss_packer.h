// Packs the rows that a running kernel requests; see miss_requests.h.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "../common/memory.h"
#include "../common/row_packing.h"
#include "../common/workers.h"
#include "miss_requests.h"

constexpr size_t kMaxMissWorkers = 64;

// For one caller at a time. Its launches must not overlap on the GPU.
template <int kRowBytes>
class MissPacker {
 public:
  // For launches of at most `max_rows` requests for rows of `pool`. Throws std::invalid_argument if
  // there are fewer than two CPUs.
  MissPacker(const uint8_t* pool, int64_t max_rows, const std::vector<int>& cpus)
      : pool_(pool),
        ring_rows_(std::min(kRingBytes / kRowBytes, max_rows + kRingMargin)),
        rows_(zeroed<uint64_t>(max_rows)),
        values_(zeroed<LaunchValue>(kValues)),
        staging_(pinned<uint8_t>(static_cast<size_t>(ring_rows_ * kRowBytes))),
        packed_(zeroed<LaunchFlag>(Pieces::max_count(max_rows))),
        read_(zeroed<LaunchFlag>(Pieces::max_count(max_rows))),
        cpus_(worker_cpus(cpus, kMaxMissWorkers)),
        workers_(cpus_) {}
  MissPacker(const MissPacker&) = delete;
  MissPacker& operator=(const MissPacker&) = delete;
  ~MissPacker() {
    cudaEventSynchronize(launched_.get());
    give_up();  // the kernel may have failed
  }

  int64_t threads() const { return static_cast<int64_t>(cpus_.size()); }

  // Waits until the threads have left the previous launch. Then lets them answer the requests of
  // the kernel that `request(requests)` launches; `fetch(requests)` launches another one that reads
  // the packed rows. A pending CUDA error counts as one of this launch.
  template <class Request, class Fetch>
  void launch(cudaStream_t stream, const Request& request, const Fetch& fetch) {
    finish();
    ++launch_id_;
    next_.store(0, std::memory_order_relaxed);
    const MissRequests requests = {
        rows_.get(),    &values_[kFirst], &values_[kEnd], &values_[kInPlace], &values_[kByCpu],
        staging_.get(), packed_.get(),    read_.get(),    ring_rows_,         launch_id_};
    request(requests);
    working_.store(threads(), std::memory_order_relaxed);
    workers_.start([this] {
      answer();
      working_.fetch_sub(1, std::memory_order_release);
    });
    fetch(requests);
    const OffCpus off_worker_cpus(cpus_);
    if (cudaPeekAtLastError() != cudaSuccess) {
      give_up();
      return;
    }
    check(cudaEventRecord(launched_.get(), stream), "launched");
  }

  // Flushes these rows of the pool from the CPU's caches and leaves the threads awake.
  void flush(const std::vector<int64_t>& rows) {
    finish();
    const OffCpus off_worker_cpus(cpus_);
    next_.store(0, std::memory_order_relaxed);
    workers_.start([this, &rows] {
      constexpr int64_t kRowsAtOnce = 64;
      const auto count = static_cast<int64_t>(rows.size());
      for (int64_t row; (row = next_.fetch_add(kRowsAtOnce, std::memory_order_relaxed)) < count;) {
        for (const int64_t end = std::min(row + kRowsAtOnce, count); row < end; ++row) {
          flush_row<kRowBytes>(pool_ + rows[static_cast<size_t>(row)] * kRowBytes);
        }
      }
      _mm_mfence();
    });
    workers_.finish();
  }

 private:
  // Fits the shared cache of a server's CPU, where the kernel reads the rows.
  static constexpr int64_t kRingBytes = 32 << 20;
  static constexpr int64_t kRingMargin = 64;  // rows of the largest piece
  // A thread takes half of its share of the remaining rows, and at most kMaxTakenRows.
  static constexpr int64_t kShareParts = 2;
  static constexpr int64_t kMaxTakenRows = 256;
  static constexpr size_t kRowsInFlight = 8;  // prefetched by a thread and not copied yet

  enum Value { kFirst, kEnd, kInPlace, kByCpu, kValues };  // of `values_`

  // The requests that the threads answer: those before `end`, the last one first.
  struct Answer {
    int64_t end;
    Pieces pieces;

    int64_t request(int64_t row) const { return end - 1 - row; }
  };

  // Rows of consecutive pieces that a thread has taken.
  struct Taken {
    int64_t row = 0;
    int64_t end = 0;
  };

  // Waits until all threads have left the previous launch. Once its kernel has ended, nobody needs
  // their rows. Throws if the kernel has failed.
  void finish() {
    while (working_.load(std::memory_order_acquire) != 0) {
      const cudaError_t status = cudaEventQuery(launched_.get());
      if (status != cudaErrorNotReady) {
        give_up();
        check(status, "previous launch");
      }
    }
    workers_.finish();
  }

  // Ends the waiting of all threads.
  void give_up() {
    gave_up_.store(true, std::memory_order_relaxed);
    workers_.finish();
    gave_up_.store(false, std::memory_order_relaxed);
    working_.store(0, std::memory_order_relaxed);
  }

  // Waits until `holds()`. False if the launch was given up.
  template <class Holds>
  bool await(const Holds& holds) const {
    while (!holds()) {
      if (gave_up_.load(std::memory_order_relaxed)) {
        return false;
      }
      _mm_pause();
    }
    return true;
  }

  bool is_tagged(const uint64_t& word) const {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE) >> 32 == launch_id_;
  }

  static int64_t value(const uint64_t& word) { return static_cast<uint32_t>(word); }

  // Takes whole pieces: fewer towards the end, so that threads of different speed end together.
  Taken take(const Answer& answer) {
    const Pieces& pieces = answer.pieces;
    for (int64_t piece = next_.load(std::memory_order_relaxed);
         piece * pieces.piece_rows < rows_left(answer);) {
      const int64_t left = rows_left(answer) / pieces.piece_rows - piece;
      const int64_t limit = std::max(kMaxTakenRows / pieces.piece_rows, int64_t{1});
      const int64_t count = std::clamp(left / (kShareParts * threads()), int64_t{1}, limit);
      if (next_.compare_exchange_weak(piece, piece + count, std::memory_order_relaxed)) {
        const Taken taken = {piece * pieces.piece_rows,
                             std::min((piece + count) * pieces.piece_rows, pieces.rows)};
        const auto claimed = static_cast<uint32_t>(answer.end - taken.end);
        __atomic_store_n(&values_[kByCpu].word, tagged(launch_id_, claimed), __ATOMIC_RELAXED);
        return taken;
      }
    }
    return {};
  }

  // The rows that the kernel has not claimed for itself.
  int64_t rows_left(const Answer& answer) const {
    const uint64_t word = __atomic_load_n(&values_[kInPlace].word, __ATOMIC_RELAXED);
    const int64_t claimed = word >> 32 == launch_id_ ? value(word) : 0;
    return std::min(answer.pieces.rows, answer.end - claimed);
  }

  // Answers requests until all are taken. While a row is copied, a later one is prefetched.
  void answer() {
    const auto is_known = [this] {
      return is_tagged(values_[kFirst].word) && is_tagged(values_[kEnd].word);
    };
    if (!await(is_known)) {
      return;
    }
    const int64_t end = value(values_[kEnd].word);
    const Answer answer{end, Pieces(end - value(values_[kFirst].word), ring_rows_)};
    std::array<int64_t, kRowsInFlight> begun{};  // rows prefetched and not copied yet
    size_t begun_count = 0;
    size_t copied = 0;
    for (Taken taken = take(answer); taken.row < taken.end || copied < begun_count;) {
      const auto taken_is_ready = [&] { return is_ready(answer, taken.row); };
      bool begins = taken.row < taken.end;
      if (begins && copied == begun_count) {
        if (!await(taken_is_ready)) {
          return;
        }
      } else if (begins) {  // others may wait for rows that were begun, so no wait for this one
        begins = taken_is_ready();
      }
      const RowToPack later = begins ? row_to_pack(answer, taken.row) : RowToPack{};
      if (begins && begun_count - copied < kRowsInFlight) {
        prefetch_row_to_pack<kRowBytes>(later);
      } else {
        const int64_t oldest = begun[copied++ % kRowsInFlight];
        pack_row<kRowBytes>(row_to_pack(answer, oldest), later);
        announce(answer.pieces, oldest);
      }
      if (begins) {
        begun[begun_count++ % kRowsInFlight] = taken.row;
        advance(answer, taken);
      }
    }
  }

  // Moves on to the next row. A thread drops the taken pieces that the kernel has claimed.
  void advance(const Answer& answer, Taken& taken) {
    ++taken.row;
    const bool begins_piece = taken.row % answer.pieces.piece_rows == 0;
    if (taken.row == taken.end || (begins_piece && taken.row >= rows_left(answer))) {
      taken = take(answer);
    }
  }

  RowToPack row_to_pack(const Answer& answer, int64_t row) const {
    return {pool_ + value(rows_[answer.request(row)]) * kRowBytes,
            staging_.get() + answer.pieces.ring_row(row) * kRowBytes};
  }

  // Tests that the kernel has requested the row and has read the previous piece in its ring slot.
  bool is_ready(const Answer& answer, int64_t row) const {
    const int64_t previous = row / answer.pieces.piece_rows - answer.pieces.ring_pieces;
    return is_tagged(rows_[answer.request(row)]) &&
           (previous < 0 ||
            __atomic_load_n(&read_[previous].launch_id, __ATOMIC_ACQUIRE) == launch_id_);
  }

  // Announces a piece to the kernel if `row` is its last one.
  void announce(const Pieces& pieces, int64_t row) const {
    if ((row + 1) % pieces.piece_rows == 0 || row + 1 == pieces.rows) {
      __atomic_store_n(&packed_[row / pieces.piece_rows].launch_id, launch_id_, __ATOMIC_RELEASE);
    }
  }

  const uint8_t* pool_;
  int64_t ring_rows_;
  std::shared_ptr<uint64_t[]> rows_;
  std::shared_ptr<LaunchValue[]> values_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<LaunchFlag[]> packed_;
  std::shared_ptr<LaunchFlag[]> read_;
  std::shared_ptr<CUevent_st> launched_ = new_event();
  uint32_t launch_id_ = 0;
  alignas(kCacheLine) std::atomic<int64_t> next_{0};     // piece
  alignas(kCacheLine) std::atomic<int64_t> working_{0};  // threads that have not left the launch
  std::atomic<bool> gave_up_{false};
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
