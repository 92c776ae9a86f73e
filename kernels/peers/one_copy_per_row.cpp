// One cudaMemcpyAsync per row; the pairs must be copied to the host first.
#include <vector>

#include "pairs_on_host.h"

const Plan kPlan = {"peer", "first", "first", "gather", "none"};

namespace {

void copy_rows(const Share& share, cudaStream_t stream) {
  for (const int2& pair : pairs_on_host(share, stream)) {
    check(cudaMemcpyAsync(destination_bytes(share, pair.y), source_bytes(share, pair.x),
                          static_cast<size_t>(share.row_bytes), cudaMemcpyDeviceToDevice, stream),
          "copy");
  }
}

}  // namespace

Move prepare(const Share&, const Resources&) { return copy_rows; }
