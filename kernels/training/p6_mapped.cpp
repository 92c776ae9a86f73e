// Phase 5 over pages that are mapped where a heap needs them, plugged into PyTorch.
#include "../fragmentation/p6_mapped.cpp"

#include "out_of_memory.h"
