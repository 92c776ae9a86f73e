// A row that a warp holds in registers on its way.
#pragma once

#include "operator.h"

// Loads all of the row before the first store; `lane` is the first vector that this thread moves.
__device__ inline void move_row(const Copy& copy, int64_t row, int lane) {
  const auto* src = reinterpret_cast<const int4*>(copy.src + row * kRowBytes);
  const int4 held = src[lane];
  reinterpret_cast<int4*>(copy.dst + row * kRowBytes)[lane] = held;
}
