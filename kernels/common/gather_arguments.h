// Checks of what gathers are bound to, beyond those of arrays.h. As in require.h, everything here
// has internal linkage.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.h"
#include "sm_count.h"

namespace {

// As check(): throws std::runtime_error with CUDA's message.
[[maybe_unused]] void require_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

cudaPointerAttributes attributes_of(const void* pointer, const char* field) {
  cudaPointerAttributes attributes{};
  require_success(cudaPointerGetAttributes(&attributes, pointer), field);
  return attributes;
}

void require_row(int row, int64_t rows, size_t index, const char* which) {
  if (row < 0 || row >= rows) {
    require(false, "pairs[" + std::to_string(index) + "]",
            std::string("a ") + which + " row in [0, " + std::to_string(rows) + ")",
            std::to_string(row));
  }
}

// `count` pairs, copied to the host, each with a row of either side: any other one would be a fault
// in the middle of a kernel.
std::vector<int2> checked_pairs(const int2* pairs, size_t count, int64_t source_rows,
                                int64_t destination_rows) {
  std::vector<int2> found(count);
  require_success(cudaMemcpy(found.data(), pairs, count * sizeof(int2), cudaMemcpyDeviceToHost),
                  "pairs");
  for (size_t i = 0; i < count; ++i) {
    require_row(found[i].x, source_rows, i, "source");
    require_row(found[i].y, destination_rows, i, "destination");
  }
  return found;
}

// Raises a ValueError unless there is a count for each SM.
void require_count_per_sm(const Array& sm_launches) {
  const int sms = sm_count();
  require(sm_launches.shape[0] >= sms, "sm_launches", "at least " + std::to_string(sms) + " counts",
          std::to_string(sm_launches.shape[0]));
}

}  // namespace
