// The CPU, with page tables apart from the GPUs', packs all rows; the copy engines of all GPUs move
// them.
#include "packer.h"

const Plan kPlan = {"host", "first", "first", "gather", "none"};

Move prepare(const Share& share, const Resources& resources) {
  const auto packer = std::make_shared<Packer>(share.rows, share.row_bytes, resources);
  return [packer](const Share& of, cudaStream_t stream) {
    packer->fetch(of, stream);
    packer->pack(of, stream);
  };
}
