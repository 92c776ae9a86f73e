// As rows, but with hints that caches should evict the loaded and stored lines first.
#include "row_copy.h"

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  return launch_rows<Streaming>(walk, stream);
}
