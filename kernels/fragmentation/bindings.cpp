// The bindings of the allocator study.
#include "../allocator/bindings.cpp"
