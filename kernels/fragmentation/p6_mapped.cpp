// Phase 5 with all its duties, over pages that are mapped where a heap needs them.
#include <mutex>

#include "../../allocator/dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  using Complete = dropin::Dropin<std::mutex, dropin::SizeStatistics, dropin::TraceRing>;
  return dropin::make_over<Complete, CudaMapping>(source);
}
