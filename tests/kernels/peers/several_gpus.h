// What several_gpus.cpp offers beside CUDA's own functions.
#pragma once

#include <cuda_runtime.h>

#include <functional>

// Does all work of the other streams, and of this one only what they wait for.
void run_ahead(cudaStream_t of);

// Has `stream` do this in its turn, as CUDA's own functions do.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// The call after so many others fails, of those that give a GPU work or ask for memory; with -1,
// none does.
void fail_at(int call);
