// The allocator study's fourth phase.
#include "../phases/p4_final.cpp"
