// Phase 5 over pages that are mapped on demand.
#include "../lib/full_featured.h"
#include "../lib/make_dropin.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_dropin<dropin::FullFeatured, CudaMapping>(source);
}
