// A warp owns a row, and neither what it loads nor what it stores is worth keeping in a cache.
#include "row_copy.h"

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  return launch_rows<Streaming>(walk, stream);
}
