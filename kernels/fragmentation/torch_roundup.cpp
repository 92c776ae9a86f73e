// PyTorch's allocator with the settings of this variant in workload.py.
#include "../allocator/torch_caching.cpp"
