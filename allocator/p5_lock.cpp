// Phase 5 with a lock that puts to sleep whoever waits for it.
#include <mutex>

#include "dropin_over.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_over<dropin::Dropin<std::mutex>>(source);
}
