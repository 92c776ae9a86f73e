// One copy per piece, from or to pinned memory that bypasses the CPU's caches.
#include "loop.h"

const Memory kMemory = Memory::kWriteCombined;
