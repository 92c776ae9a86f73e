// Pages of 2 MiB, touched and then registered by one call.
#include "operation.h"

void pin(const Request&, PinnedMemory& memory) {
  memory.map(MADV_HUGEPAGE);
  memory.touch(1);
  memory.register_chunks(memory.bytes(), 1);
}
