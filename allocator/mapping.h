// Memory that grows where it is: ranges of addresses, into which pages are mapped from their start.
#pragma once

#include <cstddef>

// What a source may offer besides MemorySource, and under the same conditions. It counts mapped
// bytes as reserved, and owns what is mapped.
class Mapping {
 public:
  virtual ~Mapping() = default;

  // The start of a new range that has addresses for all memory of the device, and none of it
  // mapped.
  virtual char* reserve(int device) = 0;

  // Maps `bytes` more, a multiple of kPage; false where the device has no room.
  virtual bool extend(int device, char* range, size_t bytes) = 0;

  // Unmaps at the end what extend has mapped, piece by piece, while `keep` bytes stay mapped;
  // returns how many still are. Waits until nothing on the device uses memory.
  virtual size_t shrink(int device, char* range, size_t keep) = 0;

  // Takes back the addresses, and whatever is still mapped there; errors are nobody's then.
  virtual void drop(int device, char* range) = 0;

  static constexpr size_t kPage = size_t{2} << 20;
};
