// One device-to-device copy of the same number of contiguous bytes.
#include "contiguous.h"

bool ContiguousPath::waits() const { return false; }

void ContiguousPath::unpack(cudaStream_t stream, PartTimer& /*timer*/) {
  check(cudaMemcpyAsync(ends_.dst, ends_.src, receive_.bytes, cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
}
