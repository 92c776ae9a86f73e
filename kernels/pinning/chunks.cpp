// Pages of 2 MiB, touched by several threads and then registered chunk by chunk.
#include "operation.h"

void pin(const Request& request, PinnedMemory& memory) {
  memory.map(MADV_HUGEPAGE);
  memory.touch(request.threads);
  memory.register_chunks(request.chunk_bytes, 1);
}
