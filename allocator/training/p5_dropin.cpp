// Phase 5 with the feature set of PyTorch's allocator, plugged into PyTorch.
#include "../phases/p5_dropin.cpp"

#include "out_of_memory.h"
