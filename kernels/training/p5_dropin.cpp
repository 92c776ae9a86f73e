// Phase 5 with all that PyTorch's allocator does for each call, plugged into PyTorch.
#include "../../allocator/p5_dropin.cpp"

#include "out_of_memory.h"
