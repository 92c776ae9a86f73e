// Layouts of the counters of a transfer.
#pragma once

#include <array>
#include <atomic>

#include "messages.h"

// Two counters that all devices share.
template <typename Count>
struct alignas(64) SharedCounters {
  Count posted{0};
  Count finished{0};
};

namespace {

// A counter that only one thread writes; a padded one fills a cache line.
struct Plain {
  std::atomic<uint64_t> value{0};
};
struct alignas(64) Padded {
  std::atomic<uint64_t> value{0};
};

}  // namespace

// Two arrays of counters with an element for each device. An `Element` holds an atomic `value`.
template <typename Element>
struct alignas(64) ShardedCounters {
  std::array<Element, kMaxDevices> posted{};
  std::array<Element, kMaxDevices> finished{};
  alignas(Element) std::atomic<uint64_t> finished_devices{0};
};

// Sum over all devices.
template <typename Element>
uint64_t sum(const std::array<Element, kMaxDevices>& elements) {
  uint64_t total = 0;
  for (const Element& element : elements) {
    total += element.value.load(std::memory_order_relaxed);
  }
  return total;
}
