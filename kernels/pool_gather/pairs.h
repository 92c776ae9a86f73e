// The pairs of a launch, for threads of the host.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "scratch.h"

constexpr int64_t kFirstPairs = 8192;  // as many as keep the threads busy until the others are here

// They come in two pieces, so that the first rows are packed while other pairs are on their way.
class Pairs {
 public:
  // For launches of at most `rows` rows.
  explicit Pairs(int64_t rows) : pairs_(page_locked<int2>(static_cast<size_t>(rows))) {
    // Pairs that never came are those of another launch, or these: their rows can be read.
    std::fill_n(pairs_.get(), rows, int2{});
  }

  // Enqueues their copies. await_first() and await_others() have to follow.
  void fetch(const int2* pairs, int64_t rows, cudaStream_t stream) {
    rows_ = rows;
    first_ = std::min(rows, kFirstPairs);
    copy(pairs, 0, first_, stream, first_here_.get());
    if (first_ < rows_) {
      copy(pairs, first_, rows_, stream, others_here_.get());
    }
  }

  // While no thread reads pairs of the launch before.
  void await_first() {
    check(cudaEventSynchronize(first_here_.get()), "first pairs");
    here_.store(first_, std::memory_order_release);
  }

  void await_others() {
    const cudaError_t status =
        first_ < rows_ ? cudaEventSynchronize(others_here_.get()) : cudaSuccess;
    // Even where they did not come: threads wait for them.
    here_.store(rows_, std::memory_order_release);
    check(status, "pairs");
  }

  // Waits for the pair, if need be.
  const int2& operator[](int64_t row) const {
    while (row >= here_.load(std::memory_order_acquire)) {
      _mm_pause();
    }
    return pairs_[row];
  }

 private:
  void copy(const int2* pairs, int64_t first, int64_t end, cudaStream_t stream, cudaEvent_t here) {
    check(cudaMemcpyAsync(pairs_.get() + first, pairs + first, (end - first) * sizeof(int2),
                          cudaMemcpyDeviceToHost, stream),
          "pairs");
    check(cudaEventRecord(here, stream), "pairs");
  }

  std::shared_ptr<int2[]> pairs_;
  int64_t rows_ = 0;
  int64_t first_ = 0;
  std::shared_ptr<CUevent_st> first_here_ = new_event();
  std::shared_ptr<CUevent_st> others_here_ = new_event();
  std::atomic<int64_t> here_{0};
};
