// A copy a piece, from or to page-locked memory on transparent huge pages.
#include "loop.h"

const Memory kMemory = Memory::kRegisteredHuge;
