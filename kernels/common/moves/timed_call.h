// Host time of a call until its stream is idle.
#pragma once

#include "step.h"

template <class Call>
inline double seconds_of(const Call& call, cudaStream_t stream) {
  const auto start = Clock::now();
  call();
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return seconds_since(start);
}
