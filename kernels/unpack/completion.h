// How the host waits for a stream. study.yaml's option `completion` names the function.
#pragma once

#include <chrono>
#include <thread>

#include "operator.h"

#ifndef COMPLETION
#define COMPLETION synchronized
#endif

namespace {

// Returns as soon as the stream is idle.
[[maybe_unused]] void synchronized(cudaStream_t stream) {
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

constexpr std::chrono::milliseconds kPollInterval{50};

// Sleeps between two queries of the stream.
[[maybe_unused]] void polled_every_50_ms(cudaStream_t stream) {
  cudaError_t status = cudaStreamQuery(stream);
  while (status == cudaErrorNotReady) {
    std::this_thread::sleep_for(kPollInterval);
    status = cudaStreamQuery(stream);
  }
  check(status, "cudaStreamQuery");
}

}  // namespace
