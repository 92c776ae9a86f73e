// A warp copies a row: it loads all of it, 512 bytes per instruction, then stores it.
#include "row_copy.h"

cudaError_t launch(const Walk& walk, cudaStream_t stream) {
  return launch_rows<Cached>(walk, stream);
}
