// A gather that all GPUs sort by the order of the pool, so that each reads a part of it.
#pragma once

#include <memory>

#include "../common/sorter.h"
#include "gather.h"

// Rows in flight lie in many ranges of this size, so their order within a range cannot matter.
constexpr int64_t kRangeBytes = int64_t{1} << 20;

// Gathers a share of the first `rows` rows of each launch, in the order of the pool. The GPUs thus
// divide the pool whatever rows are drawn, without counting the rows of each part.
inline Move gather_in_order(const Share& share, int64_t rows) {
  const auto sorter =
      std::make_shared<Sorter>(rows, range_bits(share.pool_rows, share.row_bytes, kRangeBytes));
  return [sorter, rows](const Share& of, cudaStream_t stream) {
    Share all = rows_of(whole(of), 0, rows);
    all.pairs = sorter->sorted(all.pairs, stream);
    const int64_t end = of.destination + of.rows;
    gather(rows_of(all, boundary_in(rows, of, of.destination), boundary_in(rows, of, end)), stream);
  };
}
