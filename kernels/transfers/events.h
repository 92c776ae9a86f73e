// Events that are there as long as they are needed: to time, and to order streams.
#pragma once

#include "transfer.h"

// A CUDA event, of the device that is current when it is made. Throws std::runtime_error where CUDA
// refuses.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  // It is reached when what `stream` has been given so far is done, and `delay` lets another stream
  // wait for that.
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void delay(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  // Seconds from `start` to this one; waits until it is reached. Both must be timing events.
  double since(const Event& start) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};
