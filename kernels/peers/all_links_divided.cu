// Each GPU gathers the rows of a part of the pool and translates addresses of that part only.
#include "gather.h"

namespace {

struct InPart {
  int64_t begin;  // rows of the pool
  int64_t end;

  __device__ bool operator()(int2 pair) const { return begin <= pair.x && pair.x < end; }
};

// The part of the pool that corresponds to the share's part of the launch.
InPart part_of(const Share& share) {
  const int64_t end = share.destination + share.rows;
  return {boundary_in(share.pool_rows, share, share.destination),
          boundary_in(share.pool_rows, share, end)};
}

}  // namespace

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share&, const Resources&) {
  // Every GPU goes through all pairs: to skip a pair is cheaper than to collect the pairs of a
  // part.
  return [](const Share& share, cudaStream_t stream) {
    gather_picked(whole(share), part_of(share), stream);
  };
}
