// As many contiguous bytes.
#include "operator.h"

__global__ void copy_bytes(Copy copy) { copy.dst[threadIdx.x] = copy.src[threadIdx.x]; }

void launch(const Copy& copy) { copy_bytes<<<1, copy.rows * kRowBytes>>>(copy); }
