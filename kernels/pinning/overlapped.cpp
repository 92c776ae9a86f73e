// Pages of 2 MiB. Each thread touches a chunk and registers it, while others touch theirs.
#include "operation.h"

void pin(const Request& request, PinnedMemory& memory) {
  memory.map(MADV_HUGEPAGE);
  memory.touch_and_register(request.chunk_bytes, request.threads);
}
