// Does nothing, so that only the call into the module is timed.
#include "operation.h"

cudaError_t launch(const Copy& /*copy*/, cudaStream_t /*stream*/) { return cudaSuccess; }
