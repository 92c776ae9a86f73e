// A thread owns a row and copies it byte by byte.
#include "parts.h"

__global__ void copy_rows(Copy copy) { move<uint8_t>(copy, threadIdx.x, 0, 1); }

void launch(const Copy& copy) { copy_rows<<<1, copy.rows>>>(copy); }
