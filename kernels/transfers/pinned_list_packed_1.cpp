// Packed by the caller alone.
#include "list_packed.h"

const Memory kMemory = Memory::kPinned;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListPacked>(pieces, 1);
}
