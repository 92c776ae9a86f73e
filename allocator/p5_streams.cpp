// Phase 5, the allocator alone: p4_final without its faults among streams, captures and a driver
// that refuses.
#include "dropin_over.h"
#include "spin_lock.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_over<dropin::Dropin<SpinLock>>(source);
}
