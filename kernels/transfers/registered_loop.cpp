// A copy a piece, from or to memory that was page-locked after it was allocated.
#include "loop.h"

const Memory kMemory = Memory::kRegistered;
