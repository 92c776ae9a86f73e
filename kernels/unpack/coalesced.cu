// As kernel_parameters, but fragments that are adjacent on both sides are merged first.
#include "parameters.h"

namespace {

// Whether `next` starts where `run` ends, and one descriptor can hold both.
bool continues(const Descriptor& run, const Descriptor& next) {
  return uint64_t{run.src_off} + run.len == next.src_off && run.dst_off + run.len == next.dst_off &&
         uint64_t{run.len} + next.len <= LONGEST_FRAGMENT;
}

}  // namespace

void ParametersPath::unpack(cudaStream_t stream, PartTimer& timer) {
  Descriptor run{};
  for (const Chunk& chunk : receive_.chunks) {
    for (const DescriptorBlock& block : chunk) {
      for (uint32_t i = 0; i < block.count; ++i) {
        const Descriptor& next = block.descriptors[i];
        if (run.len != 0 && continues(run, next)) {
          run.len += next.len;
          continue;
        }
        if (run.len != 0) {
          launcher_.add(run, stream);
        }
        run = next;
      }
    }
  }
  launcher_.add(run, stream);
  launch(stream, timer);
}
