// The real driver with what a framework needs of it: streams by thread, and captures.
#pragma once

#include <atomic>

#include "driver_source.h"
#include "stream_source.h"

// Memory and events are those of `driver`, which outlives it.
//
// The default stream of a thread has a number of its own, which is odd as no address is. Only the
// thread itself can name that stream. An event that another thread records for it goes to the
// device's default stream, which waits for those of all threads.
class CudaStreams : public StreamSource {
 public:
  explicit CudaStreams(DriverSource& driver) : driver_(driver) {}

  void* allocate(int device, size_t bytes) override { return driver_.allocate(device, bytes); }
  void release(int device, void* ptr) override { driver_.release(device, ptr); }
  bool is_done(int device, Event event) override { return driver_.is_done(device, event); }
  void wait(int device, Event event) override { driver_.wait(device, event); }
  void recycle(int device, Event event) override { driver_.recycle(device, event); }
  SourceCounts counts(int device) const override { return driver_.counts(device); }
  void reset_counts(int device) override { driver_.reset_counts(device); }

  Event record(int device, Stream stream) override { return driver_.record(device, named(stream)); }

  Stream identity(Stream stream) override {
    if (stream == kPerThread) {
      return own_number();
    }
    return stream == kLegacy ? 0 : stream;
  }

  Capture capture_of(int device, Stream stream) override {
    const OnDevice on(device);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const auto handle = reinterpret_cast<cudaStream_t>(named(stream));
    const cudaError_t answer = cudaStreamIsCapturing(handle, &status);
    if (answer == cudaErrorStreamCaptureImplicit) {
      cudaGetLastError();  // it would be reported by the next call that asks
      return Capture::kRefused;
    }
    check(answer, "cudaStreamIsCapturing");
    return status == cudaStreamCaptureStatusNone ? Capture::kNone : Capture::kCaptured;
  }

  // The driver refuses cudaMalloc to a thread that captures, unless that says it knows what it
  // does: the call is no part of the graph.
  void* allocate_in_capture(int device, size_t bytes) override {
    const Relaxed relaxed;
    return driver_.allocate(device, bytes);
  }

 protected:
  // Makes a device the current one of the thread.
  struct OnDevice {
    explicit OnDevice(int device) {
      check(cudaGetDevice(&before), "cudaGetDevice");
      check(cudaSetDevice(device), "cudaSetDevice");
    }
    ~OnDevice() { cudaSetDevice(before); }
    int before = 0;
  };

  // The handle by which this thread can reach the stream of such a number.
  static Stream named(Stream stream) {
    if (stream % 2 == 0) {
      return stream;
    }
    return stream == own_number() ? kPerThread : 0;
  }

 private:
  static constexpr Stream kLegacy = 1;     // cudaStreamLegacy
  static constexpr Stream kPerThread = 2;  // cudaStreamPerThread

  // Lets the thread make calls that captures forbid.
  struct Relaxed {
    Relaxed() { check(cudaThreadExchangeStreamCaptureMode(&mode), "capture mode"); }
    ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  };

  static Stream own_number() {
    static std::atomic<Stream> threads{0};
    thread_local const Stream own = 2 * ++threads + 1;
    return own;
  }

  DriverSource& driver_;
};
