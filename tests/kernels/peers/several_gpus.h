// What several_gpus.cpp offers beside CUDA's own functions.
#pragma once

#include <cuda_runtime.h>

// Does all work of the other streams, and of this one only what they wait for.
void run_ahead(cudaStream_t of);
