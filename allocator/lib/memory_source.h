// The source of an allocator's memory and events: the CUDA driver (driver_source.h), or a
// simulation on the host that only counts (host_source.h).
#pragma once

#include <cstddef>
#include <cstdint>

using Stream = std::uintptr_t;  // a cudaStream_t; 0 is the default stream
using Event = std::uintptr_t;   // a point in a stream's work; opaque outside of its source

// Current and peak bytes, and calls since the last reset.
struct SourceCounts {
  size_t reserved = 0, peak_reserved = 0;
  uint64_t allocations = 0, frees = 0;
  uint64_t event_records = 0, event_queries = 0, event_waits = 0;
};

// Not thread-safe: a thread-safe allocator calls it under the lock of the device, and a source
// shares no state between devices. Its destructor frees memory that was not released. `device` is
// an index below kMaxDevices. Errors of the driver are std::runtime_error.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // Device memory, aligned to 512 B; nullptr where none is left.
  virtual void* allocate(int device, size_t bytes) = 0;

  // Releases a whole allocation. Throws std::logic_error for any other pointer.
  virtual void release(int device, void* ptr) = 0;

  // Records an event after all work of `stream` so far. is_done queries it, wait blocks the thread
  // until it is complete. The caller recycles each event exactly once.
  virtual Event record(int device, Stream stream) = 0;
  virtual bool is_done(int device, Event event) = 0;
  virtual void wait(int device, Event event) = 0;
  virtual void recycle(int device, Event event) = 0;

  // Counts of this device. A reset sets calls to 0 and the peak to the current bytes.
  virtual SourceCounts counts(int device) const = 0;
  virtual void reset_counts(int device) = 0;
};

constexpr int kMaxDevices = 16;
