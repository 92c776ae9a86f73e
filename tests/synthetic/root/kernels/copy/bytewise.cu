// A thread owns a row and copies it byte by byte.
#include "operator.h"

__global__ void copy_rows(Copy copy) {
  const int64_t row = threadIdx.x;
  for (int i = 0; i < kRowBytes; ++i) {
    copy.dst[row * kRowBytes + i] = copy.src[row * kRowBytes + i];
  }
}

void launch(const Copy& copy) { copy_rows<<<1, copy.rows>>>(copy); }
