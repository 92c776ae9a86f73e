// Pages of the system, touched and then registered by one call.
#include "operation.h"

void pin(const Request&, PinnedMemory& memory) {
  memory.map(MADV_NOHUGEPAGE);
  memory.touch(1);
  memory.register_chunks(memory.bytes(), 1);
}
