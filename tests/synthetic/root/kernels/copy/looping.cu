// Warps that stay and take one row after the other.
#include "operator.h"

__global__ void copy_rows(Copy copy) {
  constexpr int kBlocks = 16;
  const int64_t row = blockIdx.x % kBlocks + threadIdx.x / 32;
  const auto* src = reinterpret_cast<const int4*>(copy.src + row * kRowBytes);
  auto* dst = reinterpret_cast<int4*>(copy.dst + row * kRowBytes);
  int4 held[kRowBytes / 16 / 32 + 1];
#pragma unroll
  for (int i = threadIdx.x % 32, turn = 0; i < kRowBytes / 16; i += 32, ++turn) {
    held[turn] = src[i];
  }
  for (int i = threadIdx.x % 32, turn = 0; i < kRowBytes / 16; i += 32, ++turn) {
    dst[i] = held[turn];
  }
}

void launch(const Copy& copy) { copy_rows<<<1, 32 * copy.rows>>>(copy); }
