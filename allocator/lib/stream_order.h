// Streams that wait for each other on the device without blocking the host.
#pragma once

#include "memory_source.h"

// An optional interface of a MemorySource, with the same threading rules.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;

  // Lets all later work of `stream` wait for `event`. Not for a stream that is being captured.
  virtual void wait_for_event(int device, Stream stream, Event event) = 0;
};
