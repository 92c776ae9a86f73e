// Phase 5 with a lock that puts to sleep whoever waits for it.
#include <mutex>

#include "dropin.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return std::make_unique<dropin::Dropin<std::mutex>>(source);
}
