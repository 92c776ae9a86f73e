// Where an allocator gets memory and events from: the driver (driver_source.h), or a host that only
// counts (host_source.h).
#pragma once

#include <cstddef>
#include <cstdint>

using Stream = std::uintptr_t;  // a cudaStream_t; 0 is the default stream
using Event = std::uintptr_t;   // a point in a stream's work; its source says what the number is

// Bytes now and at most, and calls, since the counts were reset.
struct SourceCounts {
  size_t reserved = 0;
  size_t peak_reserved = 0;
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t event_records = 0;
  uint64_t event_queries = 0;
  uint64_t event_waits = 0;
};

// Not thread-safe: an allocator that serves threads calls it under the lock of the device, and a
// source keeps what belongs to one device apart from the others. It owns what it gave out and has
// not got back, and frees that when it goes. `device` is an index below kMaxDevices. What the
// driver refuses is std::runtime_error.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // Device memory, aligned to 512 bytes; nullptr where there is none left.
  virtual void* allocate(int device, size_t bytes) = 0;

  // Takes back what allocate gave, whole. Throws std::logic_error for any other pointer.
  virtual void release(int device, void* ptr) = 0;

  // An event behind everything `stream` has been given so far. The caller gives it back by recycle,
  // once, when it is done; until then is_done asks whether it is reached, and wait blocks the
  // thread until it is.
  virtual Event record(int device, Stream stream) = 0;
  virtual bool is_done(int device, Event event) = 0;
  virtual void wait(int device, Event event) = 0;
  virtual void recycle(int device, Event event) = 0;

  // Of this device. A reset sets the calls to 0 and the peak to what is reserved now.
  virtual SourceCounts counts(int device) const = 0;
  virtual void reset_counts(int device) = 0;
};

constexpr int kMaxDevices = 16;
