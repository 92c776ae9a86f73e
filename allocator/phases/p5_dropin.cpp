// Phase 5 with the feature set of PyTorch's allocator.
#include "../lib/full_featured.h"
#include "../lib/make_dropin.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_dropin<dropin::FullFeatured>(source);
}
