// A thread owns a row and copies it in vectors.
#include "operator.h"

__global__ void copy_rows(Copy copy) {
  const int64_t row = threadIdx.x;
  const auto* src = reinterpret_cast<const int4*>(copy.src + row * kRowBytes);
  auto* dst = reinterpret_cast<int4*>(copy.dst + row * kRowBytes);
#pragma unroll
  for (int i = 0; i < kRowBytes / 16; ++i) {
    dst[i] = src[i];
  }
}

void launch(const Copy& copy) { copy_rows<<<1, copy.rows>>>(copy); }
