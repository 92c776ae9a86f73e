// The allocator study's fifth phase, with all that PyTorch's does for each call.
#include "../../allocator/p5_dropin.cpp"
