// Events that are there as long as they are needed: to time, and to order streams.
#pragma once

#include "transfer.h"

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void delay(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  // Seconds from `start` to this one, once it is reached.
  double since(const Event& start) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};
