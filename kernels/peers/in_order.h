// Rows that all GPUs put in the order of the pool, so that each gathers from a part of it.
#pragma once

#include <memory>

#include "gather.h"
#include "sorter.h"

// Rows in flight lie in many such ranges at once, so that the order within one cannot matter.
constexpr int64_t kRangeBytes = int64_t{1} << 20;

// Gathers, of the first `rows` rows of a launch, a share like this one, by order. So the GPUs
// divide the pool however the rows lie in it, and nobody has to count which rows are whose.
inline Move gather_in_order(const Share& share, int64_t rows) {
  const auto sorter = std::make_shared<Sorter>(share, rows, kRangeBytes);
  return [sorter, rows](const Share& of, cudaStream_t stream) {
    Share all = stretch(whole(of), 0, rows);
    all.pairs = sorter->sorted(all.pairs, stream);
    const int64_t end = of.destination + of.rows;
    gather(stretch(all, share_of(rows, of, of.destination), share_of(rows, of, end)), stream);
  };
}
