// The interface that a framework needs beyond allocator.h: private pools for CUDA graphs, the
// lifetime of streams, and hooks that can free memory before a request fails.
#pragma once

#include <functional>
#include <utility>

#include "allocator.h"

using PoolId = std::pair<uint64_t, uint64_t>;  // PyTorch's MempoolId_t; {0, 0} means no pool

// Thread-safe. cudaStreamPerThread is a different stream in each thread.
//
// A stream that was recorded for an allocation has to exist until that is freed, and no longer. A
// stream that allocates may be destroyed after stream_ends or when all its work is complete: an
// allocation may have let it wait for another stream.
class PooledAllocator : public Allocator {
 public:
  // Serves allocations for the streams that `takes` accepts from `pool`, which is made at its first
  // use. `takes` is called under the allocator's lock, in the allocating thread, with that thread's
  // handle of the stream. During any capture the driver is asked for memory only, and frees are
  // deferred to its end. The graphs captured with a pool share its memory.
  virtual void begin_capture(int device, PoolId pool, std::function<bool(Stream)> takes) = 0;

  // Ends the capture of the last begin_capture with `pool`, before the captured streams are
  // destroyed. Throws std::invalid_argument where there is none.
  virtual void end_capture(int device, PoolId pool) = 0;

  // Reports that the graph of one begin_capture was destroyed. After the last graph of a pool, its
  // free memory may be returned. Throws std::invalid_argument for an unknown pool.
  virtual void release_pool(int device, PoolId pool) = 0;

  // Promises that `place.stream` is never destroyed, so that one event serves several frees. The
  // default stream needs no promise.
  virtual void keep_stream(Place place) = 0;

  // Waits until `place.stream` has finished with the memory that was freed to it, so that a new
  // stream may have the same handle. To be called just before the stream is destroyed.
  virtual void stream_ends(Place place) = 0;

  // Called without locks when a request of `bytes` has found no memory. Hooks run in turn until one
  // returns true, meaning that it has freed some; then the request is tried once more.
  using OutOfMemoryHook = std::function<bool(int device, size_t bytes)>;
  virtual void on_out_of_memory(OutOfMemoryHook hook) = 0;
};
