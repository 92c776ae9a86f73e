// Phase 5 with statistics by size, too.
#include <mutex>

#include "dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_over<dropin::Dropin<std::mutex, dropin::SizeStatistics>>(source);
}
