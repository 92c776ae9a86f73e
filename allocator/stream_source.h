// What an allocator has to know of streams besides their events: which is which, and whether their
// work is being captured into a CUDA graph. Inside a capture the driver refuses most of what an
// allocator does, and what it refuses ends the capture.
#pragma once

#include "memory_source.h"

// What an event recorded now would become.
enum class Capture : uint8_t {
  kNone,      // one that can be queried
  kCaptured,  // part of the graph that the stream is captured into: it never can
  kRefused,   // nothing: the default stream waits for one that is being captured
};

// Calls may be made inside a capture where that is said, and nowhere else.
class StreamSource : public MemorySource {
 public:
  // A number for the stream that `stream` means in this thread, the same in every thread; that of
  // the default stream is 0. All other calls take it in place of a stream. May be called inside a
  // capture, and without the lock that the others need.
  virtual Stream identity(Stream stream) = 0;

  // Of work that the stream is given now. May be called inside a capture, as may record where it
  // says kNone.
  virtual Capture capture_of(int device, Stream stream) = 0;

  // As allocate, but may be called inside a capture.
  virtual void* allocate_in_capture(int device, size_t bytes) = 0;
};
