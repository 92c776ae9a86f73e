// Phase 7, with mapped pages and streams that wait for each other, plugged into PyTorch.
#include "../fragmentation/p7_ordered.cpp"

#include "out_of_memory.h"
