// The allocator study's fourth phase.
#include "../allocator/p4_final.cpp"
