// Each GPU sorts its share by the order of the pool first, as far as that saves translations.
#include <algorithm>

#include "gather.h"
#include "sorter.h"

namespace {

// Host memory that a GPU holds translations of, and that one translation covers.
constexpr int64_t kHeldBytes = int64_t{HELD_MIB} << 20;
constexpr int64_t kPageBytes = int64_t{PAGE_KIB} << 10;

}  // namespace

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share& share, const Resources&) {
  // If the GPU holds all translations that the rows can need, their order cannot matter.
  if (std::min(share.rows * kPageBytes, share.pool_rows * share.row_bytes) <= kHeldBytes) {
    return gather;
  }
  // A range is half of the memory held, because the rows in flight may lie in two ranges.
  const auto sorter = std::make_shared<Sorter>(share, share.rows, kHeldBytes / 2);
  return [sorter](Share of, cudaStream_t stream) {
    of.pairs = sorter->sorted(of.pairs, stream);
    gather(of, stream);
  };
}
