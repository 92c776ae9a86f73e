// One step of a longer computation on data in device memory: it changes every 32-bit word.
#pragma once

#include <chrono>

#include "../common/moves/events.h"
#include "../common/moves/transfer.h"

// work.py computes the same.
constexpr uint32_t kFactor = 1664525;
constexpr uint32_t kTerm = 1013904223;

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Copies the data to the host, performs the step on one CPU thread, and enqueues the copy back.
// Returns the seconds of the step alone. One piece, a multiple of 4 bytes. Throws
// std::runtime_error with CUDA's message.
inline double step_on_host(const Pieces& pieces, cudaStream_t stream) {
  const auto copy = [&](uint8_t* to, const uint8_t* from, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, pieces.size, kind, stream), "cudaMemcpyAsync");
  };
  copy(pieces.host, pieces.device, cudaMemcpyDeviceToHost);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const auto start = Clock::now();
  auto* words = reinterpret_cast<uint32_t*>(pieces.host);
  for (int64_t i = 0; i < pieces.size / static_cast<int64_t>(sizeof(uint32_t)); ++i) {
    words[i] = words[i] * kFactor + kTerm;
  }
  const double seconds = seconds_since(start);
  copy(pieces.device, pieces.host, cudaMemcpyHostToDevice);
  return seconds;
}
