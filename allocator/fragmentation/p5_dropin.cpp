// The allocator study's fifth phase, with the feature set of PyTorch's allocator.
#include "../phases/p5_dropin.cpp"
