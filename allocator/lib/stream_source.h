// Stream identities, and whether a stream is being captured into a CUDA graph. Inside a capture the
// driver refuses most calls of an allocator, and a refused call ends the capture.
#pragma once

#include "memory_source.h"

// The fate of an event that is recorded now.
enum class Capture : uint8_t {
  kNone,      // it can be queried
  kCaptured,  // it becomes part of the graph and can never be queried
  kRefused,   // it is refused: the default stream waits for a captured one
};

// Calls are forbidden inside a capture unless their comment allows it.
class StreamSource : public MemorySource {
 public:
  // The identity of the stream that the handle `stream` means in this thread; the same in every
  // thread, and 0 for the default stream. All other calls take identities. Allowed inside a capture
  // and without the lock that the other calls need.
  virtual Stream identity(Stream stream) = 0;

  // The capture state of the stream. Allowed inside a capture, and so is record where this returns
  // kNone.
  virtual Capture capture_of(int device, Stream stream) = 0;

  // Like allocate, but allowed inside a capture.
  virtual void* allocate_in_capture(int device, size_t bytes) = 0;
};
