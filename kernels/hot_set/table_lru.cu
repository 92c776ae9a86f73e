// Evicts the least recently used rows.
#include "block_step.h"
#include "table_resolve.h"

struct LruResolve : TableResolve {
  using Shared = TableShared;
  using TableResolve::TableResolve;

  __device__ void resolve() {
    find();
    evict();
  }
};

Prepared prepare(const std::vector<HotSet>& layers, const std::vector<int>&) {
  return prepare_block_steps<LruResolve>(layers, Residencies(layers));
}
