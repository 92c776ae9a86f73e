// PyTorch's allocator, with the settings that workload.py gives it.
#include "../../allocator/torch_caching.cpp"
