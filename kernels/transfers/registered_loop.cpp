// One copy per piece, from or to memory that was page-locked after its allocation.
#include "loop.h"

const Memory kMemory = Memory::kRegistered;
