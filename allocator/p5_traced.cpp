// Phase 5 as in p5_dropin, with the trace of the first device switched on.
#include "complete.h"
#include "dropin_over.h"

namespace {

class Traced : public dropin::Complete {
 public:
  explicit Traced(MemorySource& source) : Complete(source) { record_trace(0, true); }
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_over<Traced>(source);
}
