// The same loop, on a GPU.
#include "operation.h"

__global__ void count(int* done, int calls) { *done = calls; }

int call(int calls) {
  int* done = nullptr;
  cudaMallocManaged(&done, sizeof *done);
  count<<<1, 1>>>(done, calls);
  cudaDeviceSynchronize();
  const int found = *done;
  cudaFree(done);
  return found;
}
