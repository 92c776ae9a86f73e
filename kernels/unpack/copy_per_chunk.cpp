// One device-to-device copy per chunk, of the same number of contiguous bytes.
#include "contiguous.h"

bool ContiguousPath::waits() const { return receive_.chunks.size() > kMaxQueuedCalls; }

void ContiguousPath::unpack(cudaStream_t stream, PartTimer& /*timer*/) {
  uint64_t offset = 0;
  for (const Chunk& chunk : receive_.chunks) {
    uint64_t bytes = 0;
    for (const DescriptorBlock& block : chunk) {
      bytes += block.bytes;
    }
    check(cudaMemcpyAsync(ends_.dst + offset, ends_.src + offset, bytes, cudaMemcpyDeviceToDevice,
                          stream),
          "cudaMemcpyAsync");
    offset += bytes;
  }
}
