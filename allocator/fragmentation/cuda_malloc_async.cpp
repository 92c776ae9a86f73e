// The driver's stream-ordered pool.
#include "../phases/cuda_malloc_async.cpp"
