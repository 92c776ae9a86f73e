// One interface for every phase and reference of this study.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory_source.h"

// Where an allocation is used: an argument of every call, so that no call has to look it up.
struct Place {
  int device;
  Stream stream;
};

// Bytes; `active` counts blocks as large as the allocator made them, `reserved` what the driver
// gave.
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

// A pointer that is not a live allocation of this allocator.
struct InvalidPointer : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

class Allocator {
 public:
  virtual ~Allocator() = default;

  // At least `bytes` of device memory, for work on place.stream; nullptr for 0 bytes.
  // Throws OutOfMemory.
  virtual void* allocate(size_t bytes, Place place) = 0;

  // Gives `ptr` back. `place.device` is that of the allocation.
  virtual void deallocate(void* ptr, Place place) = 0;

  // Says that place.stream uses `ptr` too: once freed, it waits for what that stream has to do.
  // The phases of the write-up do not know streams.
  virtual void record_stream(void* /*ptr*/, Place /*place*/) {}

  // Returns unused memory to the driver until at most `keep` bytes are reserved.
  virtual void trim(int /*device*/, size_t /*keep*/) {}

  // Never reserves more than `bytes`.
  virtual void set_limit(int /*device*/, size_t /*bytes*/) {}

  // A number that no other allocation has; 0 where the allocator has none.
  virtual uint64_t ticket(void* /*ptr*/, int /*device*/) { return 0; }

  // deallocate, but only the allocation with this ticket. Throws InvalidPointer for a stale one.
  virtual void deallocate_ticket(void* ptr, Place place, uint64_t /*ticket*/) {
    deallocate(ptr, place);
  }

  virtual Statistics statistics(int device) = 0;
  virtual std::vector<BlockInfo> snapshot(int /*device*/) { return {}; }

  // Ends the time over which peaks and calls are counted, and begins a new one.
  virtual void reset_statistics(int device) = 0;
};

// Each variant defines it. `source` outlives the allocator and takes back what the allocator keeps.
std::unique_ptr<Allocator> make_allocator(MemorySource& source);

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
