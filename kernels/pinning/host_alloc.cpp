// The obvious call.
#include "operation.h"

void pin(const Request&, PinnedMemory& memory) { memory.allocate(); }
