// A copy a piece, from or to memory that the operating system may move.
#include "loop.h"

const Memory kMemory = Memory::kPageable;
