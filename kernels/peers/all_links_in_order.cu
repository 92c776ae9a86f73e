// Each GPU puts all rows in the order of the pool, and gathers a stretch of them. So the GPUs
// divide the pool, however the rows lie in it, and nobody has to count which rows are whose.
#include "gather.h"
#include "sorter.h"

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share& share) {
  const auto sorter = std::make_shared<Sorter>(share.launch_rows, 0, row_bits(share.pool_rows));
  return [sorter](Share of, cudaStream_t stream) {
    of.pairs = sorter->sorted(whole(of).pairs, stream) + of.destination;
    gather(of, stream);
  };
}
