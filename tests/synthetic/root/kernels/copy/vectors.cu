// A thread owns a row and copies it in vectors.
#include "parts.h"

__global__ void copy_rows(Copy copy) { move<int4>(copy, threadIdx.x, 0, 1); }

void launch(const Copy& copy) { copy_rows<<<1, copy.rows>>>(copy); }
