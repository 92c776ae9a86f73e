// The CPU packs pinned pieces into pinned staging, and one copy moves them all.
#include "packed.h"

const Memory kMemory = Memory::kPinned;
