// The CPU, with page tables apart from the GPU's, packs the rows; the copy engine moves them.
#include <memory>

#include "operator.h"
#include "packer.h"

Prepared prepare(const std::vector<Gather>& sets, const std::vector<int>& cpus) {
  const auto packer = std::make_shared<Packer>(sets.front().rows, cpus);
  return {[packer](const Gather& gather, cudaStream_t stream) {
            packer->fetch(gather, stream);
            packer->pack(gather, stream);
          },
          [packer](const Gather& gather) { packer->flush(gather); }};
}
