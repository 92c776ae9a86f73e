// A gather by all SMs.
#include "list_gather.h"

const Memory kMemory = Memory::kPinned;

constexpr int64_t kMaxBlocks = 1024;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListGather>(pieces, kMaxBlocks);
}
