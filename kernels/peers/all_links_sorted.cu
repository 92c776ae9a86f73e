// Each GPU sorts its share by the order of the pool first, as far as that saves translations.
#include <memory>

#include "../common/sorter.h"
#include "gather.h"

namespace {

// Host memory that a GPU holds translations of, and that one translation covers.
constexpr int64_t kHeldBytes = int64_t{HELD_MIB} << 20;
constexpr int64_t kPageBytes = int64_t{PAGE_KIB} << 10;

}  // namespace

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share& share, const Resources&) {
  const auto sorter = std::make_shared<Sorter>(
      share.rows,
      translation_bits(share.rows, share.pool_rows, share.row_bytes, kHeldBytes, kPageBytes));
  return [sorter](Share of, cudaStream_t stream) {
    of.pairs = sorter->sorted(of.pairs, stream);
    gather(of, stream);
  };
}
