// What an allocator offers beyond allocator.h so that a framework can run on it: private pools for
// CUDA graphs, what it has to be told of streams, and a say before memory counts as exhausted.
#pragma once

#include <functional>
#include <utility>

#include "allocator.h"

using PoolId = std::pair<uint64_t, uint64_t>;  // PyTorch's MempoolId_t; {0, 0} is no pool

// All calls may be made by several threads at once. cudaStreamPerThread is another stream in each
// thread.
//
// A stream that was recorded for an allocation has to exist until that is freed, and no longer. A
// stream that allocates may be destroyed after stream_ends, or when all that it was given is done:
// an allocation may have told it to wait for another.
class PooledAllocator : public Allocator {
 public:
  // From now on allocations for the streams that `takes` accepts come from `pool`, which is made
  // unless it is there. It is called under the allocator's lock, in the thread that allocates, with
  // the stream as that names it. While any capture is under way, the driver is asked for nothing
  // but memory, and frees wait for its end. The graphs captured with a pool share its memory.
  virtual void begin_capture(int device, PoolId pool, std::function<bool(Stream)> takes) = 0;

  // Ends what the last begin_capture with `pool` began. To be called before the streams it captured
  // are destroyed. Throws std::invalid_argument where there is none.
  virtual void end_capture(int device, PoolId pool) = 0;

  // One begin_capture's graph is gone. With the last of a pool its memory may be returned, but for
  // what is still allocated. Throws std::invalid_argument for an unknown pool.
  virtual void release_pool(int device, PoolId pool) = 0;

  // A promise that `place.stream` is never destroyed: then one event serves several frees. Nobody
  // has to make it for the default stream.
  virtual void keep_stream(Place place) = 0;

  // Waits for what `place.stream` still does with memory that was freed to it, so that another
  // stream may come back under its handle. To be called just before it is destroyed.
  virtual void stream_ends(Place place) = 0;

  // Called in turn when a request of so many bytes has found no memory, without any lock held,
  // until one returns true, which says that it has freed some; then all is tried once more.
  using OutOfMemoryHook = std::function<bool(int device, size_t bytes)>;
  virtual void on_out_of_memory(OutOfMemoryHook hook) = 0;
};
