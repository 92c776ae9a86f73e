// Round trips: each piece is copied to the device, processed there, and copied back.
#pragma once

#include <algorithm>

#include "../common/launch.h"
#include "../common/moves/events.h"
#include "../common/moves/transfer.h"

// Each round maps a 32-bit word to word * kFactor + kTerm; work.py computes the same.
constexpr uint32_t kFactor = 1664525;
constexpr uint32_t kTerm = 1013904223;
constexpr int kRounds = WORK_ROUNDS;  // take about as long as the copy of a piece

#ifdef __CUDACC__
__global__ void work(uint32_t* words, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    uint32_t word = words[i];
    // If it unrolled the loop, the compiler would fold several rounds into one.
#pragma unroll 1
    for (int round = 0; round < kRounds; ++round) {
      word = word * kFactor + kTerm;
    }
    words[i] = word;
  }
}

// The three parts of a piece's trip, and the streams that they run on, which start and end with the
// caller's. It owns them. Throws std::invalid_argument if there are none, std::runtime_error with
// CUDA's message.
class RoundTrip : public Method {
 public:
  explicit RoundTrip(const Pieces& moved) : Method(moved) {
    if (pieces.streams < 1) {
      throw std::invalid_argument("streams: expected at least 1, got " +
                                  std::to_string(pieces.streams));
    }
    sides_.resize(static_cast<size_t>(pieces.streams));
    streams_.resize(sides_.size());
  }

  void launch(cudaStream_t stream) override {
    std::transform(sides_.begin(), sides_.end(), streams_.begin(),
                   [&](const SideStream& side) { return side.fork(stream); });
    enqueue();
    for (const SideStream& side : sides_) {
      side.join(stream);
    }
  }

 protected:
  // Enqueues all parts of all trips, in the order of the variant.
  virtual void enqueue() = 0;

  // The stream of piece i, and the three parts of its trip, each enqueued on a stream.
  cudaStream_t stream_of(int64_t i) const { return streams_[i % streams_.size()]; }
  void copy_in(int64_t i, cudaStream_t stream) const {
    check(cudaMemcpyAsync(pieces.on_device(i), pieces.on_host(i), pieces.size,
                          cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
  }
  void work_on(int64_t i, cudaStream_t stream) const {
    const int64_t words = pieces.size / static_cast<int64_t>(sizeof(uint32_t));
    const int blocks = static_cast<int>((words + kBlock - 1) / kBlock);
    work<<<blocks, kBlock, 0, stream>>>(reinterpret_cast<uint32_t*>(pieces.on_device(i)), words);
    check(cudaGetLastError(), "work");
  }
  void copy_out(int64_t i, cudaStream_t stream) const {
    check(cudaMemcpyAsync(pieces.landing + i * pieces.pitch, pieces.on_device(i), pieces.size,
                          cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
  }

 private:
  std::vector<SideStream> sides_;
  std::vector<cudaStream_t> streams_;
};

// The variant defines `enqueue`.
class Trip : public RoundTrip {
 public:
  using RoundTrip::RoundTrip;

 protected:
  inline void enqueue() override;
};

std::unique_ptr<Method> method(const Pieces& pieces) { return std::make_unique<Trip>(pieces); }
#endif
