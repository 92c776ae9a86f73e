// Streams that wait for each other on the device, while the host goes on.
#pragma once

#include "memory_source.h"

// What a source may offer besides MemorySource, and under the same conditions.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;

  // What `stream` is given from now on begins when `event` is reached. Not for a stream that is
  // being captured.
  virtual void put_behind(int device, Stream stream, Event event) = 0;
};
