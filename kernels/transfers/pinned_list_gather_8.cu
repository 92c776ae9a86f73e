// A gather by eight thread blocks, which leaves most SMs to others.
#include "../common/moves/list_gather.h"

constexpr int64_t kMaxBlocks = 8;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListGather>(pieces, kMaxBlocks);
}
