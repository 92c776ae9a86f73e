// Pages of 2 MiB that CUDA makes present when it registers them by one call.
#include "operation.h"

void pin(const Request&, PinnedMemory& memory) {
  memory.map(MADV_HUGEPAGE);
  memory.register_chunks(memory.bytes(), 1);
}
