// Phase 6 with streams that wait for each other where much of the memory waits.
#include <mutex>

#include "../../allocator/dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  using Complete = dropin::Dropin<std::mutex, dropin::SizeStatistics, dropin::TraceRing>;
  return dropin::make_over<Complete, CudaOrder>(source);
}
