// Pages of 2 MiB, touched by several threads and then registered by one call.
#include "operation.h"

void pin(const Request& request, PinnedMemory& memory) {
  memory.map(MADV_HUGEPAGE);
  memory.touch(request.threads);
  memory.register_chunks(memory.bytes(), 1);
}
