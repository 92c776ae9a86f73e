// The CUDA driver with per-thread default streams and graph captures, as a framework needs them.
#pragma once

#include <atomic>

#include "driver_source.h"
#include "stream_source.h"

// Forwards memory and events to `driver`, which outlives this object.
//
// The per-thread default stream of each thread is identified by an odd number, which no handle is.
// Only the thread itself can address that stream. An event that another thread records for it goes
// to the device's default stream, which waits for the default streams of all threads.
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
      return per_thread_id();
    }
    return stream == kLegacy ? 0 : stream;
  }

  Capture capture_of(int device, Stream stream) override {
    const OnDevice on(device);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const auto handle = reinterpret_cast<cudaStream_t>(named(stream));
    const cudaError_t answer = cudaStreamIsCapturing(handle, &status);
    if (answer == cudaErrorStreamCaptureImplicit) {
      cudaGetLastError();  // clears the sticky error
      return Capture::kRefused;
    }
    check(answer, "cudaStreamIsCapturing");
    return status == cudaStreamCaptureStatusNone ? Capture::kNone : Capture::kCaptured;
  }

  // The driver refuses cudaMalloc in a thread that captures, unless its capture mode is relaxed:
  // the call is not part of the graph.
  void* allocate_in_capture(int device, size_t bytes) override {
    const RelaxedCapture relaxed;
    return driver_.allocate(device, bytes);
  }

 protected:
  // Makes a device current in this scope.
  struct OnDevice {
    explicit OnDevice(int device) {
      check(cudaGetDevice(&before), "cudaGetDevice");
      check(cudaSetDevice(device), "cudaSetDevice");
    }
    ~OnDevice() { cudaSetDevice(before); }
    int before = 0;
  };

  // The handle with which this thread addresses the stream of an identity.
  static Stream named(Stream stream) {
    if (stream % 2 == 0) {
      return stream;
    }
    return stream == per_thread_id() ? kPerThread : 0;
  }

 private:
  static constexpr Stream kLegacy = 1;     // cudaStreamLegacy
  static constexpr Stream kPerThread = 2;  // cudaStreamPerThread

  // Permits calls that captures forbid, in this scope.
  struct RelaxedCapture {
    RelaxedCapture() { check(cudaThreadExchangeStreamCaptureMode(&mode), "capture mode"); }
    ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode); }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  };

  static Stream per_thread_id() {
    static std::atomic<Stream> threads{0};
    thread_local const Stream id = 2 * ++threads + 1;
    return id;
  }

  DriverSource& driver_;
};
