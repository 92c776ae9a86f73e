// A copy a piece, from or to managed memory that was moved to the host before.
#include "loop.h"

const Memory kMemory = Memory::kManaged;
