// Phase 5 with all that PyTorch's allocator does for each call.
#include <mutex>

#include "dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  using Complete = dropin::Dropin<std::mutex, dropin::SizeStatistics, dropin::TraceRing>;
  return dropin::make_over<Complete>(source);
}
