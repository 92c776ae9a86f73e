// Events that time a stream, and a second stream beside the caller's.
#pragma once

#include "../memory.h"

// A timing event of the device that is current at construction. Throws std::runtime_error with
// CUDA's message.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  // The event completes after all work that `stream` has so far.
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  // Waits for this event; seconds since `start`.
  double since(const Event& start) const {
    float ms = 0;
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// A stream whose work begins after all that the caller's stream has at fork(), and for which the
// caller's stream waits from join() on.
class SideStream {
 public:
  cudaStream_t fork(cudaStream_t from) const {
    order(forked_.get(), from, stream_.get());
    return stream_.get();
  }
  void join(cudaStream_t into) const { order(joined_.get(), stream_.get(), into); }

 private:
  static void order(cudaEvent_t event, cudaStream_t first, cudaStream_t then) {
    check(cudaEventRecord(event, first), "cudaEventRecord");
    check(cudaStreamWaitEvent(then, event, 0), "cudaStreamWaitEvent");
  }

  std::shared_ptr<CUstream_st> stream_ = new_stream();
  std::shared_ptr<CUevent_st> forked_ = new_event();
  std::shared_ptr<CUevent_st> joined_ = new_event();
};
