// A gather by all SMs.
#include "../common/moves/list_gather.h"

constexpr int64_t kMaxBlocks = 1024;

std::unique_ptr<Method> method(const Pieces& pieces) {
  return std::make_unique<ListGather>(pieces, kMaxBlocks);
}
