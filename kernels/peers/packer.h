// Threads pack scattered rows into pinned staging memory. The copy engines of all GPUs fetch packed
// rows, each over its GPU's link, and pass them on to the first GPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "../common/packed_rows.h"
#include "../common/workers.h"
#include "on_gpu.h"
#include "operation.h"

constexpr int64_t kPieceRows = 256;               // packed by a thread at a time
constexpr int64_t kCopyBytes = int64_t{2} << 20;  // about
constexpr int kStreams = 2;  // per GPU: one fetches rows while the other passes rows on

// Copies packed rows over the link of a GPU, on one of its streams. Rows for another GPU pass
// through this GPU's memory: a direct copy would use the other GPU's link.
class Sender {
 public:
  Sender(int gpu, size_t max_bytes) : gpu_(gpu) {
    const OnGpu there(gpu_);
    stream_ = new_stream();
    done_ = new_event();
    if (gpu_ != 0) {
      passing_ = on_device<uint8_t>(max_bytes);
    }
  }

  cudaStream_t stream() const { return stream_.get(); }

  void wait(cudaEvent_t event) const {
    const OnGpu there(gpu_);
    check(cudaStreamWaitEvent(stream(), event, 0), "begun");
  }

  void send(uint8_t* dst, const uint8_t* packed, size_t bytes) const {
    const OnGpu there(gpu_);
    uint8_t* const landed = passing_ != nullptr ? passing_.get() : dst;
    check(cudaMemcpyAsync(landed, packed, bytes, cudaMemcpyHostToDevice, stream()), "packed rows");
    if (landed != dst) {
      check(cudaMemcpyAsync(dst, landed, bytes, cudaMemcpyDefault, stream()), "passed rows");
    }
  }

  // Lets `caller` wait for all rows sent.
  void join(cudaStream_t caller) const {
    {
      const OnGpu there(gpu_);
      check(cudaEventRecord(done_.get(), stream()), "sent");
    }
    check(cudaStreamWaitEvent(caller, done_.get(), 0), "sent");
  }

 private:
  int gpu_;
  std::shared_ptr<CUstream_st> stream_;
  std::shared_ptr<CUevent_st> done_;
  std::shared_ptr<uint8_t[]> passing_;  // null on the first GPU
};

// Destinations are consecutive rows of the first GPU, which is the current one.
class Packer {
 public:
  // For launches of `rows` rows.
  Packer(int64_t rows, int row_bytes, const Resources& resources)
      : copy_rows_(std::max<int64_t>(1, kCopyBytes / (row_bytes * kPieceRows)) * kPieceRows),
        pairs_(pinned<int2>(static_cast<size_t>(rows))),
        staging_(pinned<uint8_t>(static_cast<size_t>(rows * row_bytes))),
        packed_(static_cast<size_t>((rows + kPieceRows - 1) / kPieceRows)),
        cpus_(worker_cpus(resources.cpus, resources.cpus.size())),
        workers_(cpus_) {
    for (int i = 0; i < kStreams * resources.gpus; ++i) {
      senders_.emplace_back(i % resources.gpus, static_cast<size_t>(copy_rows_ * row_bytes));
    }
  }

  // Enqueues the copy of the pairs to the host, after all work of `caller`. pack() must follow,
  // with the same rows.
  void fetch(const Share& share, cudaStream_t caller) {
    check(cudaEventRecord(begun_.get(), caller), "begun");
    for (const Sender& sender : senders_) {
      sender.wait(begun_.get());
    }
    check(cudaMemcpyAsync(pairs_.get(), share.pairs, share.rows * sizeof(int2),
                          cudaMemcpyDeviceToHost, senders_.front().stream()),
          "pairs");
  }

  // Packs the rows, enqueues their copies as they are packed, and lets `caller` wait for the
  // copies. Returns when all are enqueued.
  void pack(const Share& share, cudaStream_t caller) {
    const OffCpus off_worker_cpus(cpus_);
    // With the pairs, all copies of the previous launch have arrived: staging memory is free.
    check(cudaStreamSynchronize(senders_.front().stream()), "pairs");
    workers_.finish();  // the previous launch may have failed
    ++launch_id_;
    next_.store(0, std::memory_order_relaxed);
    workers_.start([this, share] { pack_pieces(share); });
    send(share);
    for (const Sender& sender : senders_) {
      sender.join(caller);
    }
  }

 private:
  // Packs pieces until none is left.
  void pack_pieces(const Share& share) {
    for (;;) {
      const int64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      const int64_t first = piece * kPieceRows;
      if (first >= share.rows) {
        return;
      }
      pack_rows<kMaxRowBytes>(
          staging_.get(), first, std::min(first + kPieceRows, share.rows), share.row_bytes,
          [&](int64_t row) { return share.pool + int64_t{pairs_[row].x} * share.row_bytes; });
      packed_[static_cast<size_t>(piece)].store(launch_id_, std::memory_order_release);
    }
  }

  // Enqueues copies as rows are packed; the GPUs take turns.
  void send(const Share& share) {
    size_t turn = 0;
    for (int64_t first = 0; first < share.rows; first += copy_rows_) {
      const int64_t end = std::min(first + copy_rows_, share.rows);
      await(first, end);
      const int64_t at = first * share.row_bytes;
      senders_[turn++ % senders_.size()].send(share.dst + share.destination * share.row_bytes + at,
                                              staging_.get() + at,
                                              static_cast<size_t>((end - first) * share.row_bytes));
    }
  }

  // Waits until rows [first, end) are packed.
  void await(int64_t first, int64_t end) const {
    for (int64_t row = first; row < end; row += kPieceRows) {
      const auto& packed = packed_[static_cast<size_t>(row / kPieceRows)];
      while (packed.load(std::memory_order_acquire) != launch_id_) {
        _mm_pause();
      }
    }
  }

  int64_t copy_rows_;
  std::shared_ptr<int2[]> pairs_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<CUevent_st> begun_ = new_event();
  std::vector<Sender> senders_;
  std::vector<std::atomic<uint64_t>> packed_;  // latest launch that each piece was packed for
  uint64_t launch_id_ = 0;
  std::atomic<int64_t> next_{0};
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
