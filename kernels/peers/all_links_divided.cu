// Each GPU gathers the rows of a part of the pool, and translates addresses of that part only.
#include "gather.h"

namespace {

struct InPart {
  int64_t begin;  // rows of the pool
  int64_t end;

  __device__ bool operator()(int2 pair) const { return begin <= pair.x && pair.x < end; }
};

// As large a part of the pool as the share is of the launch.
InPart part_of(const Share& share) {
  const auto bound = [&share](int64_t row) { return share.pool_rows * row / share.launch_rows; };
  return {bound(share.destination), bound(share.destination + share.rows)};
}

}  // namespace

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share&) {
  // Every GPU goes through all pairs: to pass one over takes less than to put those of a part
  // together first.
  return [](const Share& share, cudaStream_t stream) {
    gather_picked(whole(share), part_of(share), stream);
  };
}
