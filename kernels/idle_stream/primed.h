// A kernel of some microseconds before batched calls, so that they do not find an idle stream.
#pragma once

#include "../common/moves/batch.h"

#ifndef PRIME_NS
#define PRIME_NS 20'000
#endif

__global__ void wait_ns(unsigned long long ns) {
  unsigned long long start = 0;
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
}

inline void prime(cudaStream_t stream) {
  wait_ns<<<1, 1, 0, stream>>>(PRIME_NS);
  check(cudaGetLastError(), "wait_ns");
}
