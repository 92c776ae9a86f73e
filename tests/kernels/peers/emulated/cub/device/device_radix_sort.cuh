// The sort of CUB that variants call, on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels_on_cpu.h"

namespace cub {

struct DeviceRadixSort {
  static cudaError_t SortKeys(void* scratch, size_t& scratch_bytes, const uint64_t* keys,
                              uint64_t* sorted, int64_t count, int low, int high,
                              cudaStream_t stream) {
    if (scratch == nullptr) {
      scratch_bytes = 1;
      return cudaSuccess;
    }
    return enqueue(stream, [=] {
      const uint64_t mask = (uint64_t{1} << (high - low)) - 1;
      const auto digits = [=](uint64_t key) { return key >> low & mask; };
      std::copy(keys, keys + count, sorted);
      std::stable_sort(sorted, sorted + count,
                       [=](uint64_t one, uint64_t other) { return digits(one) < digits(other); });
    });
  }
};

}  // namespace cub
