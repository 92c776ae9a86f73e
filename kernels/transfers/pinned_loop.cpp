// One copy per piece, from or to pinned memory.
#include "loop.h"

const Memory kMemory = Memory::kPinned;
