// Phase 6 with streams that wait on the device for pending memory.
#include "../lib/full_featured.h"
#include "../lib/make_dropin.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_dropin<dropin::FullFeatured, CudaOrder>(source);
}
