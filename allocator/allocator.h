// One interface for every phase and reference of this study. The runner and the state check call
// it, and Python through bindings.cpp.
//
// Sizes are bytes, pointers are device addresses. An allocator owns nothing of what it hands out,
// and a caller gives everything back before it drops the allocator. p4_final, cuda_malloc_async and
// torch_caching may be called by several threads at once, all others by one at a time. Besides the
// errors named below, std::runtime_error carries what the driver says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory_source.h"

// Where an allocation is used: an argument of every call, so that no call has to look it up. The
// device is its index, below kMaxDevices.
struct Place {
  int device;
  Stream stream;
};

// Bytes now and at most, and calls since the last reset. `requested` is what callers asked for and
// still hold, `active` the same in blocks as large as the allocator made them, `reserved` what the
// driver gave and has not got back. An allocator leaves at 0 what it cannot tell.
struct Statistics {
  size_t requested = 0;
  size_t active = 0;
  size_t peak_active = 0;
  size_t reserved = 0;
  size_t peak_reserved = 0;
  uint64_t driver_calls = 0;  // allocations and frees
  uint64_t allocations = 0;
  uint64_t frees = 0;
};

enum class BlockState : uint8_t {
  kFree,     // may be merged, split and handed out
  kCached,   // kept whole for the next request of its exact size
  kUsed,     // handed out
  kWaiting,  // freed, but another stream may still use it
};

// A block of the heap: its address, its size and that of the request in B, and the stream whose
// memory it is. `segment` is the address of what the driver gave it out of; `requested` is 0 unless
// the block is used.
struct BlockInfo {
  uintptr_t segment;
  uintptr_t ptr;
  size_t size;
  size_t requested;
  BlockState state;
  Stream stream;
};

// No memory left after everything was tried; `snapshot` is the heap as it was then.
struct OutOfMemory : std::runtime_error {
  explicit OutOfMemory(const std::string& what, std::vector<BlockInfo> blocks = {})
      : std::runtime_error(what), snapshot(std::move(blocks)) {}
  std::vector<BlockInfo> snapshot;
};

// A pointer that is not a live allocation of this allocator. Phase 0 and the references leave it to
// what they call to notice.
struct InvalidPointer : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

class Allocator {
 public:
  virtual ~Allocator() = default;

  // At least `bytes` of device memory, aligned to 256 B or more, for work on place.stream, and the
  // caller's until it is deallocated; nullptr for 0 bytes. Throws OutOfMemory.
  virtual void* allocate(size_t bytes, Place place) = 0;

  // Gives `ptr` back, and does nothing for nullptr. `place.device` is that of the allocation. Work
  // on its stream that was enqueued before may still run. Throws InvalidPointer.
  virtual void deallocate(void* ptr, Place place) = 0;

  // Says that place.stream uses `ptr` too: once freed, it waits for what that stream has to do.
  // Only p4_final and torch_caching know streams. With all others this does nothing, and the caller
  // has to wait before it frees.
  virtual void record_stream(void* /*ptr*/, Place /*place*/) {}

  // Returns unused memory to the driver until at most `keep` bytes are reserved, or nothing unused
  // is left. Does nothing in phases 0 to 3; torch_caching returns all of it, whatever `keep` is.
  virtual void trim(int /*device*/, size_t /*keep*/) {}

  // From now on growth stops at `bytes` reserved, and a request that needs more throws OutOfMemory;
  // what is reserved beyond that already stays. Only the allocators of phase 4 can be bounded. All
  // others inherit this, which does nothing and does not say so: they are NOT bounded afterwards.
  virtual void set_limit(int /*device*/, size_t /*bytes*/) {}

  // A number that no other allocation of this device has or had; 0 where the allocator has none, as
  // all but p4_final. Throws InvalidPointer.
  virtual uint64_t ticket(void* /*ptr*/, int /*device*/) { return 0; }

  // deallocate, but only the allocation with this ticket. Throws InvalidPointer for a stale one.
  // Where there are no tickets, whatever is at `ptr` is given back.
  virtual void deallocate_ticket(void* ptr, Place place, uint64_t /*ticket*/) {
    deallocate(ptr, place);
  }

  // As of now. The phases before 4 know one device and count for all of them.
  virtual Statistics statistics(int device) = 0;

  // Every block of the device by its address; empty where the allocator cannot tell.
  virtual std::vector<BlockInfo> snapshot(int /*device*/) { return {}; }

  // Ends the time over which peaks and calls are counted, and begins a new one.
  virtual void reset_statistics(int device) = 0;
};

// Each variant defines it. `source` outlives the allocator, which does not own it, and takes back
// what the allocator keeps. torch_caching throws std::runtime_error where PyTorch was not there to
// build with; it and cuda_malloc_async have memory of their own and leave `source` alone.
std::unique_ptr<Allocator> make_allocator(MemorySource& source);

// The least multiple of `unit` that is no less than `bytes`.
constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
