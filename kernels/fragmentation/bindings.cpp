// The allocator study's way in.
#include "../../allocator/bindings.cpp"
