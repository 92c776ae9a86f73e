// The CPU packs pageable pieces into pinned staging, and one copy moves them all.
#include "packed.h"

const Memory kMemory = Memory::kPageable;
