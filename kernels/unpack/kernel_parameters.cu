// One launch for all chunks, which carries their descriptors as kernel parameters.
#include "parameters.h"

void ParametersPath::unpack(cudaStream_t stream, PartTimer& timer) {
  for (const Chunk& chunk : receive_.chunks) {
    for (const DescriptorBlock& block : chunk) {
      for (uint32_t i = 0; i < block.count; ++i) {
        launcher_.add(block.descriptors[i], stream);
      }
    }
  }
  launch(stream, timer);
}
