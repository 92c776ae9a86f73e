// The driver's stream-ordered pool.
#include "../allocator/cuda_malloc_async.cpp"
