// Memory that grows in place: address ranges into which pages are mapped from their start.
#pragma once

#include <cstddef>

// An optional interface of a MemorySource, with the same threading rules. Mapped bytes count as
// reserved, and the source owns the mapped pages.
class Mapping {
 public:
  virtual ~Mapping() = default;

  // Reserves a range of addresses for all memory of the device, with nothing mapped; returns its
  // start.
  virtual char* reserve(int device) = 0;

  // Maps `bytes` more, a multiple of kPage; false where the device has no memory.
  virtual bool extend(int device, char* range, size_t bytes) = 0;

  // Unmaps whole pieces of `extend` from the end while at least `keep` bytes stay mapped; returns
  // the bytes that are still mapped. Waits until the device is idle.
  virtual size_t shrink(int device, char* range, size_t keep) = 0;

  // Unmaps everything and releases the addresses; ignores errors.
  virtual void drop(int device, char* range) = 0;

  static constexpr size_t kPage = size_t{2} << 20;
};
