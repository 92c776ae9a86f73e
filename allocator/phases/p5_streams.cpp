// Phase 5 without observers: p4_final made safe for streams that end, for captures and for a driver
// that refuses.
#include "../lib/make_dropin.h"
#include "../lib/spin_lock.h"

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_dropin<dropin::Dropin<SpinLock>>(source);
}
