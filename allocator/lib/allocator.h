// The interface of every phase and reference of this study. Called by the runner, by the state
// check, and by Python through bindings.cpp.
//
// Sizes are in bytes, pointers are device addresses. The caller frees all allocations before it
// destroys the allocator. p4_final, the phases after it, cuda_malloc_async and torch_caching are
// thread-safe; call all others from one thread at a time. Errors of the driver are
// std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory_source.h"

// Device and stream of an allocation, passed with every call so that none has to look them up. The
// device is an index below kMaxDevices.
struct Place {
  int device;
  Stream stream;
};

// Current and peak bytes, and calls since the last reset. `requested` counts the live requests,
// `active` the blocks that serve them, `reserved` the memory held from the driver. Values that an
// allocator does not know are 0.
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
  kCached,   // kept whole for the next request of exactly its size
  kUsed,     // handed out
  kWaiting,  // freed, but another stream may still use it
};

// A block of the heap: address, size in B, requested bytes, and the stream that owns the memory.
// `segment` is the start of the driver's allocation; `requested` is 0 unless the block is used.
struct BlockInfo {
  uintptr_t segment;
  uintptr_t ptr;
  size_t size;
  size_t requested;
  BlockState state;
  Stream stream;
};

// Thrown when no memory is left after every attempt; `snapshot` is the heap at that moment.
struct OutOfMemory : std::runtime_error {
  explicit OutOfMemory(const std::string& what, std::vector<BlockInfo> blocks = {})
      : std::runtime_error(what), snapshot(std::move(blocks)) {}
  std::vector<BlockInfo> snapshot;
};

// Thrown for a pointer that is not a live allocation of this allocator. Phase 0 and the references
// leave this check to the code that they call.
struct InvalidPointer : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

class Allocator {
 public:
  virtual ~Allocator() = default;

  // At least `bytes` of device memory for work on place.stream, aligned to 256 B or more; nullptr
  // for 0 bytes. Throws OutOfMemory.
  virtual void* allocate(size_t bytes, Place place) = 0;

  // Frees `ptr`; ignores nullptr. `place.device` is the device of the allocation. Work that was
  // enqueued on its stream before may still run. Throws InvalidPointer.
  virtual void deallocate(void* ptr, Place place) = 0;

  // Records that place.stream uses `ptr`, too: a free then waits for that stream's work so far.
  // Only p4_final, the phases after it and torch_caching know streams. With all others this does
  // nothing, and the caller waits before it frees.
  virtual void record_stream(void* /*ptr*/, Place /*place*/) {}

  // Returns unused memory to the driver until at most `keep` bytes are reserved or no memory is
  // unused. Does nothing in phases 0 to 3; torch_caching ignores `keep` and returns all.
  virtual void trim(int /*device*/, size_t /*keep*/) {}

  // Stops growth at `bytes` reserved: a request that needs more throws OutOfMemory. Memory that is
  // already reserved stays. Throws std::invalid_argument in phases 0 to 3, cuda_malloc_async and
  // rmm_pool, which cannot be bounded. Only torch_caching inherits this: PyTorch's limit is one of
  // the process, torch.cuda.set_per_process_memory_fraction, and the workload sets that.
  virtual void set_limit(int /*device*/, size_t /*bytes*/) {}

  // A number that no other allocation of this device has ever had; 0 in allocators without tickets,
  // which are all before p4_final and the references. Throws InvalidPointer.
  virtual uint64_t ticket(void* /*ptr*/, int /*device*/) { return 0; }

  // Frees `ptr` if it is the allocation with this ticket; throws InvalidPointer for a stale one.
  // Allocators without tickets ignore the ticket.
  virtual void deallocate_ticket(void* ptr, Place place, uint64_t /*ticket*/) {
    deallocate(ptr, place);
  }

  // The current statistics. The phases before 4 know one device and count for all devices.
  virtual Statistics statistics(int device) = 0;

  // All blocks of the device, sorted by address; empty where the allocator does not know them.
  virtual std::vector<BlockInfo> snapshot(int /*device*/) { return {}; }

  // Sets call counts to 0 and peaks to current values.
  virtual void reset_statistics(int device) = 0;
};

// Makes the variant's allocator; each variant defines it. `source` outlives the allocator and frees
// the memory that the allocator still holds. torch_caching and cuda_malloc_async do not use
// `source`; torch_caching throws std::runtime_error if it was built without PyTorch.
std::unique_ptr<Allocator> make_allocator(MemorySource& source);

// `bytes` rounded up to a multiple of `unit`.
constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
