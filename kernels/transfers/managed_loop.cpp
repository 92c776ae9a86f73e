// One copy per piece, from or to managed memory whose pages were moved to the host before.
#include "loop.h"

const Memory kMemory = Memory::kManaged;
