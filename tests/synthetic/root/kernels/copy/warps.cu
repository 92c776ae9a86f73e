// A warp owns a row.
#include "parts.h"

__global__ void copy_rows(Copy copy) { move<int4>(copy, threadIdx.x / 32, threadIdx.x % 32, 32); }

void launch(const Copy& copy) { copy_rows<<<1, 32 * copy.rows>>>(copy); }
