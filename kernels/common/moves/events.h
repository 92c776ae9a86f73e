// CUDA events for timing and for ordering streams, destroyed with their owner.
#pragma once

#include "transfer.h"

// An event of the device that is current at construction. Throws std::runtime_error with CUDA's
// message.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  // The event completes after all work that `stream` has so far; `delay` makes another stream wait
  // for it.
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void delay(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  // Waits for this event; seconds since `start`. Both must be timing events.
  double since(const Event& start) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};
