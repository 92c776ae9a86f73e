// The bindings of every study that replays allocations.
#include "../lib/bindings.cpp"
