// Functions of cudart.cpp in addition to CUDA's.
#pragma once

#include <cuda_runtime.h>

#include <functional>

// Enqueues `work` on `stream`, as CUDA's functions do.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

extern "C" {
// From now on, work on a stream is done when somebody waits for it, and no earlier.
void be_late();
// Does all work of the other streams, and of this one only what they wait for.
void run_ahead(cudaStream_t of);

// Lets the call with this number fail, of those that enqueue work or allocate or pin memory; -1 for
// none.
void fail_at(int call);

int pinned_ranges();
}

extern cudaError_t last_error;    // as cudaPeekAtLastError returns it
extern cudaError_t event_status;  // as cudaEventQuery returns it
extern float elapsed_ms;          // between any two events
