// One device-to-device copy per fragment.
#include "stateless.h"

void StatelessPath::unpack(cudaStream_t stream, PartTimer& /*timer*/) {
  for (const Chunk& chunk : receive_.chunks) {
    for (const DescriptorBlock& block : chunk) {
      for (uint32_t i = 0; i < block.count; ++i) {
        const Descriptor& fragment = block.descriptors[i];
        check(cudaMemcpyAsync(receive_.dst + fragment.dst_off, receive_.bounce + fragment.src_off,
                              fragment.len, cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync");
      }
    }
  }
}
