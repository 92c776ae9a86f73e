// PyTorch's allocator with the settings of this variant in workload.py.
#include "../phases/torch_caching.cpp"
