// A warp owns a row.
#include "operator.h"

__global__ void copy_rows(Copy copy) {
  const int64_t row = threadIdx.x / 32;
  const auto* src = reinterpret_cast<const int4*>(copy.src + row * kRowBytes);
  auto* dst = reinterpret_cast<int4*>(copy.dst + row * kRowBytes);
  for (int i = threadIdx.x % 32; i < kRowBytes / 16; i += 32) {
    dst[i] = src[i];
  }
}

void launch(const Copy& copy) { copy_rows<<<1, 32 * copy.rows>>>(copy); }
