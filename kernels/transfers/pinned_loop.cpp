// A copy a piece, from or to page-locked memory.
#include "loop.h"

const Memory kMemory = Memory::kPinned;
