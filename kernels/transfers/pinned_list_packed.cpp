// Packed by the CPU threads of the case, or else by all that the process may use.
#include "list_packed.h"

const Memory kMemory = Memory::kPinned;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListPacked>(pieces, pieces.streams);
}
