// Phase 6 with streams that wait for each other where much of the memory waits.
#include "../../allocator/complete.h"
#include "../../allocator/dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_over<dropin::Complete, CudaOrder>(source);
}
