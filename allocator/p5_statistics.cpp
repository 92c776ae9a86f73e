// Phase 5 with statistics by size, too.
#include <mutex>

#include "dropin.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<dropin::Dropin<std::mutex, dropin::SizeStatistics>>(source);
}
