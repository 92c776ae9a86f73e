// Phase 5 as in p5_dropin, with the trace of the first device switched on.
#include "../lib/full_featured.h"
#include "../lib/make_dropin.h"

namespace {

class Traced : public dropin::FullFeatured {
 public:
  explicit Traced(MemorySource& source) : FullFeatured(source) { record_trace(0, true); }
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(MemorySource& source) {
  return dropin::make_dropin<Traced>(source);
}
