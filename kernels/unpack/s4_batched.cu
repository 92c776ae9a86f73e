// All chunks form one batch: their descriptors are gathered in pinned memory, then one copy and one
// launch follow.
#include "batched.h"

void BatchedPath::unpack(cudaStream_t stream, PartTimer& timer) {
  batch_.send(stream, timer);
  enqueue<WidestAccess>(receive_, batch_.on_gpu(), receive_.descriptors, receive_.bytes, stream);
  timer.lap(kLaunch);
}
