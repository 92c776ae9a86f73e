// Each GPU puts its share in the order of the pool first, as far as that helps its translations.
#include <algorithm>

#include "gather.h"
#include "sorter.h"

namespace {

// Host memory whose translations a GPU holds, and what one of them covers.
constexpr int64_t kHeldBytes = int64_t{HELD_MIB} << 20;
constexpr int64_t kPageBytes = int64_t{PAGE_KIB} << 10;

}  // namespace

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share& share, const Resources&) {
  // Where all pages that the rows can touch are held anyway, order cannot matter.
  if (std::min(share.rows * kPageBytes, share.pool_rows * share.row_bytes) <= kHeldBytes) {
    return gather;
  }
  // By ranges of half of what is held, for the rows in flight may lie in two of them at once.
  const auto sorter = std::make_shared<Sorter>(share, share.rows, kHeldBytes / 2);
  return [sorter](Share of, cudaStream_t stream) {
    of.pairs = sorter->sorted(of.pairs, stream);
    gather(of, stream);
  };
}
