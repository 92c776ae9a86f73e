// One copy per piece, from or to memory whose pages the operating system may move.
#include "loop.h"

const Memory kMemory = Memory::kPageable;
