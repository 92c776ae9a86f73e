// One step of a longer computation on data that is on the device: every 32-bit word changes.
#pragma once

#include <chrono>

#include "events.h"

// workload.py does the same.
constexpr uint32_t kFactor = 1664525;
constexpr uint32_t kTerm = 1013904223;

// The step by one thread of the CPU. Returns the seconds it took.
inline double step_on_host(uint8_t* bytes, int64_t size) {
  const auto start = std::chrono::steady_clock::now();
  auto* words = reinterpret_cast<uint32_t*>(bytes);
  for (int64_t i = 0; i < size / static_cast<int64_t>(sizeof(uint32_t)); ++i) {
    words[i] = words[i] * kFactor + kTerm;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count();
}
