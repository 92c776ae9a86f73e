// The copies of a list as a graph in which none waits for another.
#include "list_graph.h"

const Memory kMemory = Memory::kPinned;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListGraph>(pieces, false);
}
