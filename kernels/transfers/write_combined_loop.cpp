// A copy a piece, from or to page-locked memory that the CPU's caches pass by.
#include "loop.h"

const Memory kMemory = Memory::kWriteCombined;
