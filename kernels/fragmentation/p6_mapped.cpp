// Phase 5 with all its duties, over pages that are mapped where a heap needs them.
#include "../../allocator/complete.h"
#include "../../allocator/dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_over<dropin::Complete, CudaMapping>(source);
}
