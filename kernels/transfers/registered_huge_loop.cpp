// One copy per piece, from or to registered memory on transparent huge pages.
#include "loop.h"

const Memory kMemory = Memory::kRegisteredHuge;
