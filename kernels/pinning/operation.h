// The operation of this study: pin host memory, so that the GPU can copy it.
#pragma once

#include "pinned_memory.h"

struct Request {
  size_t chunk_bytes;  // a multiple of kHugePage
  int threads;         // at least 1
};

// Pins all bytes of `memory`. Each variant defines it. Throws std::runtime_error with the message
// of CUDA or of the system; what was pinned by then goes with `memory`.
void pin(const Request& request, PinnedMemory& memory);
