// Threads pack scattered rows into page-locked staging memory. The copy engines of all GPUs bring
// what is packed, each over its own link, and pass it on to the GPU that it is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "../pool_gather/packed_rows.h"
#include "../pool_gather/pairs.h"
#include "../pool_gather/workers.h"
#include "on_gpu.h"
#include "operation.h"

constexpr int64_t kSentBytes = int64_t{2} << 20;  // of a copy, about
constexpr int kStreams = 2;  // of each GPU: one brings bytes while those of the other are passed on

// Brings packed rows over the link of a GPU, in the order of a stream of it. Into the memory of
// another GPU they go by way of its own: else CUDA takes the other one's link.
class Sender {
 public:
  Sender(int gpu, size_t most_bytes) : gpu_(gpu) {
    const OnGpu there(gpu_);
    stream_ = new_stream();
    done_ = new_event();
    if (gpu_ != 0) {
      passing_ = on_device<uint8_t>(most_bytes);
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

  // `caller` waits for all that was sent.
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

// The rows of a launch are for the first GPU, which is the current one, and go to consecutive ones.
class Packer {
 public:
  // For launches of so many rows.
  Packer(int64_t rows, int row_bytes, const Resources& resources)
      : sent_rows_(std::max<int64_t>(1, kSentBytes / (row_bytes * kPartRows)) * kPartRows),
        pairs_(rows),
        staging_(page_locked<uint8_t>(static_cast<size_t>(rows * row_bytes))),
        parts_(rows, kPartRows),
        cpus_(worker_cpus(resources.cpus, resources.cpus.size())),
        workers_(cpus_) {
    for (int i = 0; i < kStreams * resources.gpus; ++i) {
      senders_.emplace_back(i % resources.gpus, static_cast<size_t>(sent_rows_ * row_bytes));
    }
  }

  // Enqueues the copy of the pairs to the host, behind what `caller` has to do before. pack() has
  // to follow, with the same rows.
  void fetch(const Share& share, cudaStream_t caller) {
    check(cudaEventRecord(begun_.get(), caller), "begun");
    for (const Sender& sender : senders_) {
      sender.wait(begun_.get());
    }
    pairs_.fetch(share.pairs, share.rows, senders_.front().stream());
  }

  // Packs the rows, and enqueues their copies as they are packed; `caller` waits for these. Returns
  // when all are enqueued.
  void pack(const Share& share, cudaStream_t caller) {
    const OffCpus aside(cpus_);
    workers_.finish();  // where the launch before has failed
    // Pairs come behind all copies of the launch before: its staging memory is free.
    pairs_.await_first();
    parts_.begin(share.rows);
    workers_.start([this, share] {
      pack_parts<kMaxRowBytes>(staging_.get(), parts_, share.row_bytes, [&](int64_t row) {
        return share.pool + int64_t{pairs_[row].x} * share.row_bytes;
      });
    });
    pairs_.await_others();
    send(share);
    for (const Sender& sender : senders_) {
      sender.join(caller);
    }
  }

 private:
  // The GPUs take turns.
  void send(const Share& share) {
    size_t turn = 0;
    for (int64_t first = 0; first < share.rows; first += sent_rows_) {
      const int64_t end = std::min(first + sent_rows_, share.rows);
      for (int64_t row = first; row < end; row += kPartRows) {
        parts_.await_packed(row / kPartRows);
      }
      const int64_t at = first * share.row_bytes;
      senders_[turn++ % senders_.size()].send(share.dst + share.destination * share.row_bytes + at,
                                              staging_.get() + at,
                                              static_cast<size_t>((end - first) * share.row_bytes));
    }
  }

  int64_t sent_rows_;
  Pairs pairs_;
  std::shared_ptr<uint8_t[]> staging_;
  std::shared_ptr<CUevent_st> begun_ = new_event();
  std::vector<Sender> senders_;
  Parts parts_;
  std::vector<int> cpus_;
  Workers workers_;  // the last member, so that its threads end first
};
