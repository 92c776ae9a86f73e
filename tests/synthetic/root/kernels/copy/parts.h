// A row that is copied part by part.
#pragma once

#include "operator.h"

// Copies a row in parts of a type, every `step`-th from the part `first` on.
template <class Part>
__device__ void move(const Copy& copy, int64_t row, int first, int step) {
  for (int i = first; i < kRowBytes / int(sizeof(Part)); i += step) {
    reinterpret_cast<Part*>(copy.dst + row * kRowBytes)[i] =
        reinterpret_cast<const Part*>(copy.src + row * kRowBytes)[i];
  }
}
