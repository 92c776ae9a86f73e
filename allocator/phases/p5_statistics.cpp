// Phase 5 with a mutex and statistics by size.
#include <mutex>

#include "../lib/make_dropin.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_dropin<dropin::Dropin<std::mutex, dropin::SizeStatistics>>(source);
}
