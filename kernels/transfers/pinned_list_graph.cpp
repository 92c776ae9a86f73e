// The copies of a list as a chain: a graph in which each waits for the previous one.
#include "list_graph.h"

const Memory kMemory = Memory::kPinned;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListGraph>(pieces, true);
}
