// Pages of 2 MiB, touched and then registered chunk by chunk, both by several threads.
#include "operation.h"

void pin(const Request& request, PinnedMemory& memory) {
  memory.map(MADV_HUGEPAGE);
  memory.touch(request.threads);
  memory.register_chunks(request.chunk_bytes, request.threads);
}
